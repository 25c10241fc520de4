# Names that test, demo and tools/setup.sh share; sourced with `top` set to the top of the tree.
# shellcheck shell=bash
CACHE=${HELIOSTAT_CACHE:-$HOME/.cache/heliostat}
export HELIOSTAT_CACHE=$CACHE CCACHE_DIR=${CCACHE_DIR:-$CACHE/ccache}

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The system's own Python where there is one: Debian's python3-venv belongs to it.
system_python() {
  if [ -x /usr/bin/python3 ]; then echo /usr/bin/python3; else command -v python3; fi
}

# One virtual environment per list of packages and Python, so that two checkouts do not fight over it.
venv_path() {
  local mark
  mark=$( { cat "$top/tests/kafka/requirements.txt"; "$(system_python)" -V; } 2>/dev/null | cksum | cut -d' ' -f1)
  echo "$CACHE/venv-$mark"
}
