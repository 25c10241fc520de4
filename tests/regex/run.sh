#!/bin/sh
# run.sh -- compares mirror/regex with java.util.regex: tests/regex/run.sh [DRIVER [more arguments of compare.py]]
# SPDX-License-Identifier: Apache-2.0
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
driver=${1:-$top/build/debug/tests/regex/regex_driver}
[ $# -eq 0 ] || shift
exec python3 "$top/tests/regex/compare.py" "$driver" "$@"
