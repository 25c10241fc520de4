#!/usr/bin/env bash
# Installs what is missing to build, to run the demo or to run the tests, on Debian 12 or Ubuntu 24.04.
# Usage: tools/setup.sh [build|demo|test]. It asks for nothing, and does nothing when all is there.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
. "$top/tools/env.sh"

build_packages=(gcc libc6-dev cmake ninja-build pkg-config git ca-certificates ccache libuv1-dev libisal-dev
  libevent-dev libjansson-dev libpcre2-dev uthash-dev liblz4-dev libzstd-dev libsnappy-dev libssl-dev zlib1g-dev
  libcmocka-dev)
demo_packages=(python3 python3-venv python3-pip maven)
test_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm-14 kcat)

java_major() {
  local java=java
  [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
  "$java" -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -1
}

missing() {
  local have
  have=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii *//p' || true)
  printf '%s\n' "$@" | grep -vxF -e "$have" || true
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root: run it as root, or install sudo; the command was: $*"
  fi
}

apt_install() {
  say "setup: installing $*"
  log=$(mktemp)
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >"$log" 2>&1; then
    tail -5 "$log" >&2
    say "setup: apt-get update failed; going on with the package lists that are there" >&2
  fi
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@" >"$log" 2>&1 </dev/null; then
    tail -15 "$log" >&2
    die "apt-get could not install these packages (its words are above). Ubuntu keeps some of them in 'universe': add-apt-repository universe"
  fi
  rm -f "$log"
}

# Kafka runs on any Java from 17; the tests also have Java compile small programs, which takes a JDK.
java_suffices() {
  local major java
  major=$(java_major || true)
  [ "${major:-0}" -ge 17 ] || return 1
  java=${JAVA_HOME:+$JAVA_HOME/bin/java}
  [ "$1" != test ] || [ -x "$(dirname "$(readlink -f "${java:-$(command -v java)}")")/javac" ]
}

install_java() {
  java_suffices "$1" && return
  if apt-cache show openjdk-17-jdk-headless >/dev/null 2>&1; then
    apt_install openjdk-17-jdk-headless
  else
    apt_install default-jdk-headless
  fi
  java_suffices "$1" || die "a JDK of Java 17 or newer is needed, found Java '$(java_major || true)': set JAVA_HOME or make /usr/bin/java point to a newer one"
}

make_venv() {
  local venv temp
  venv=$(venv_path)
  [ -e "$venv/complete" ] && return
  say "setup: making a Python environment with $(tr '\n' ' ' <"$top/tests/kafka/requirements.txt")"
  mkdir -p "$CACHE"
  exec 8>"$CACHE/venv.lock"
  flock 8
  [ -e "$venv/complete" ] && return
  rm -rf "$venv"
  "$(system_python)" -m venv "$venv" || die "python3 -m venv failed (its words are above): is the package python3-venv installed?"
  temp=$(mktemp)
  if ! "$venv/bin/pip" install -q --disable-pip-version-check -r "$top/tests/kafka/requirements.txt" >"$temp" 2>&1 </dev/null; then
    tail -15 "$temp" >&2
    die "pip could not install the Python packages (its words are above): is PyPI, or a mirror named in pip.conf, within reach?"
  fi
  rm -f "$temp"
  touch "$venv/complete"
}

mode=${1:-build}
packages=("${build_packages[@]}")
case $mode in
  build) ;;
  demo) packages+=("${demo_packages[@]}") ;;
  test) packages+=("${demo_packages[@]}" "${test_packages[@]}") ;;
  *) die "usage: tools/setup.sh [build|demo|test]" ;;
esac

if command -v dpkg-query >/dev/null; then
  mapfile -t lacking < <(missing "${packages[@]}")
  [ ${#lacking[@]} = 0 ] || apt_install "${lacking[@]}"
  [ "$mode" = build ] || install_java "$mode"
else
  say "setup: this is not Debian or Ubuntu; these packages, or what they are called here, must be there: ${packages[*]}"
fi
[ "$mode" = build ] || make_venv
