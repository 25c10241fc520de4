#!/usr/bin/env bash
# run.sh -- the command line by its exit codes and words: no cluster and no daemon is needed.
# SPDX-License-Identifier: Apache-2.0
#
#     tests/cli/run.sh PROGRAM
#
# Closes with one line: N passed, N failed.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 code=0

# run ARGUMENTS...: leaves exit code, standard output and standard error.
run() {
  timeout 60 "$program" "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
}

# ok WHAT CONDITION...: counts one check.
ok() {
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'not ok: %s (exit code %s)\n' "$what" "$code"
    sed 's/^/    out: /' "$work/out" | head -5
    sed 's/^/    err: /' "$work/err" | head -5
  fi
}

exits() { [ "$code" = "$1" ]; }
says() { grep -qE -- "$1" "$work/out"; }
complains() { grep -qE -- "$1" "$work/err"; }
is_silent() { [ ! -s "$work/$1" ]; }
one_line() { [ "$(wc -l <"$work/err")" = 1 ] && complains '^heliostat: '; }
is_json() { python3 -m json.tool "$work/out" >/dev/null 2>&1; }
# hides WORD: neither output holds it.
hides() { ! grep -qF -- "$1" "$work/out" "$work/err"; }

# --- usage
run
ok "no verb: 2" exits 2
ok "no verb: usage on standard error" complains 'usage: heliostat VERB'
run --help
ok "--help: 0" exits 0
ok "--help: standard output" says 'usage: heliostat VERB'
run nonsense
ok "unknown verb: 2" exits 2
ok "unknown verb: named in one line" one_line
ok "unknown verb: named" complains 'nonsense'
for verb in run check status version; do
  run $verb --help
  ok "$verb --help: 0" exits 0
  ok "$verb --help: says how" says "usage: heliostat $verb"
  ok "$verb --help: nothing is wrong" is_silent err
  run $verb --nonsense
  ok "$verb --nonsense: 2" exits 2
  ok "$verb --nonsense: one line" one_line
  ok "$verb --nonsense: named" complains 'nonsense'
done
for verb in run check; do
  run $verb
  ok "$verb without FILE: 2" exits 2
  ok "$verb without FILE: one line" one_line
  run $verb "$work/absent.properties"
  ok "$verb, no such file: 2" exits 2
  ok "$verb, no such file: named" complains 'absent\.properties'
  run $verb one two
  ok "$verb, two files: 2" exits 2
  for form in '--set novalue x' '--set =x f' '--set= f' 'f --set' 'f --clusters' '--clusters= f' '--clusters , f'; do
    # shellcheck disable=SC2086
    run $verb $form
    ok "$verb $form: 2" exits 2
    ok "$verb $form: one line" one_line
  done
  run $verb --set novalue x
  ok "$verb --set novalue: what is missing" complains "there is no '=': novalue"
  run $verb --set =x f
  ok "$verb --set =x: what is missing" complains "no key before the '=': =x"
  run $verb f --set
  ok "$verb --set at the end: what is missing" complains 'set needs key=value'
  run $verb f --clusters
  ok "$verb --clusters at the end: what is missing" complains 'names no cluster; write --clusters A,B'
done

# --- version
run version
ok "version: 0" exits 0
ok "version: number and commit" says '^heliostat [0-9]+\.[0-9]+\.[0-9]+ \(commit '
ok "version: libraries" says 'libuv +[0-9]'
run version --json
ok "version --json: 0" exits 0
ok "version --json: JSON" is_json
run --version
ok "--version: 0" exits 0

# --- a file that is right
cat >"$work/good.properties" <<'TXT'
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
heliostat.http.listen = off
TXT
run check --offline "$work/good.properties"
ok "check --offline: 0" exits 0
ok "check --offline: the flow" says '^flow a->b: exactly-once'
ok "check --offline: the other one" says '^flow b->a: not enabled'
run check --offline --json "$work/good.properties"
ok "check --offline --json: 0" exits 0
ok "check --offline --json: JSON" is_json
ok "check --offline --json: where a setting comes from" says '"line":5,"origin_key":"heliostat.http.listen"'
run check --offline --set a-\>b.enabled=false "$work/good.properties"
ok "check --set: counts" says '^flow a->b: not enabled'

# --- a file that is wrong: every problem, with its line
cat >"$work/bad.properties" <<'TXT'
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = nowhere
a->b.enabled = perhaps
tasks.max = many
a->b.topics = [
TXT
for verb in run check; do
  run $verb "$work/bad.properties"
  ok "$verb, a wrong file: 2" exits 2
  ok "$verb, a wrong file: line 3" complains '/bad\.properties:3: b\.bootstrap\.servers: .'
  ok "$verb, a wrong file: line 4" complains '/bad\.properties:4: a->b\.enabled: .'
  ok "$verb, a wrong file: line 6" complains '/bad\.properties:6: a->b\.topics: .'
  ok "$verb, a wrong file: nothing on standard output" is_silent out
done
printf "heliostat.http.listen = nowhere\n" >>"$work/bad.properties"
run check "$work/bad.properties"
ok "check, a wrong file: line 7" complains "/bad\.properties:7: heliostat\.http\.listen: ."
run check --json "$work/bad.properties"
ok "check --json, a wrong file: 2" exits 2
ok "check --json, a wrong file: JSON" is_json
ok "check --json, a wrong file: the line" says '"line":4,"key":"a->b.enabled","severity":"error"'
printf 'clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\ntopiks = .*\n' >"$work/warn.properties"
run check --offline "$work/warn.properties"
ok "an unknown key: still 0" exits 0
ok "an unknown key: the nearest one" complains ':4: topiks: warning: .*topics'

# --- secrets
cat >"$work/secret.properties" <<'TXT'
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:2
a->b.enabled = true
a.security.protocol = SASL_PLAINTEXT
a.sasl.mechanism = PLAIN
a.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";
b.ssl.keystore.password = hunter2
b.ssl.key.password = ${env:CLI_TEST_SECRET}
a.unknown.password = hunter2
TXT
export CLI_TEST_SECRET=hunter2
for args in "check --offline" "check --offline --json" "check" "check --json" "run"; do
  # shellcheck disable=SC2086
  timeout 3 "$program" $args "$work/secret.properties" --set heliostat.http.listen=off >"$work/out" 2>"$work/err" </dev/null
  code=$?
  ok "$args: no secret" hides hunter2
done

# --- nobody there
run check "$work/good.properties"
ok "check, clusters away: 3" exits 3
ok "check, clusters away: one is named" complains '^heliostat: cluster a cannot be reached: '
ok "check, clusters away: the other too" complains '^heliostat: cluster b cannot be reached: '
ok "check, clusters away: it says why" says 'connection refused'
run check --set 'a->b.enabled=false' "$work/good.properties"
ok "check, heartbeats only, clusters away: 3" exits 3
ok "check, heartbeats only: one is named" complains '^heliostat: cluster a cannot be reached: '
ok "check, heartbeats only: the other too" complains '^heliostat: cluster b cannot be reached: '
ok "check, heartbeats only: the flow" says '^flow a->b: not enabled: heartbeats only'
run status --url http://127.0.0.1:1
ok "status, nobody there: 3" exits 3
ok "status, nobody there: one line" one_line
run status --url http://127.0.0.1:1 --json
ok "status --json, nobody there: 3" exits 3
run status --url ftp://x
ok "status, not a URL of ours: 2" exits 2
run status --url
ok "status --url without a value: 2" exits 2

# --- a daemon whose clusters are away
"$program" run "$work/good.properties" --set heliostat.http.listen=127.0.0.1:0 >"$work/daemon.out" 2>"$work/daemon.log" </dev/null &
daemon=$!
url=''
for _ in $(seq 100); do
  url=$(sed -nE 's/.*http\.listening address=([0-9.:]+).*/http:\/\/\1/p' "$work/daemon.log")
  [ -z "$url" ] || break
  sleep 0.1
done
sleep 1.5
run status --url "$url"
ok "status, faults: 1" exits 1
ok "status: the flow" says '^a->b +waiting'
ok "status: the fault" says '^REFUSED '
run status --url "$url" --json
ok "status --json, faults: 1" exits 1
ok "status --json: JSON" is_json
kill -TERM $daemon
wait $daemon
code=$?
ok "run, SIGTERM while clusters are away: 0" exits 0
"$program" run "$work/good.properties" --set heliostat.http.listen=127.0.0.1:99999 >"$work/out" 2>"$work/err" </dev/null
code=$?
ok "run, an address that cannot be: 2" exits 2
ok "run, an address that cannot be: the key is named" complains 'heliostat\.http\.listen'

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
