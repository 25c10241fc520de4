#!/bin/sh
# format.sh -- shows (or with --write applies) what clang-format would change in the named files.
# SPDX-License-Identifier: Apache-2.0
#
#     tools/format.sh [--write] [FILE...]      no FILE: every .c and .h of src and tests
#
# Leaves with 1 when something differs. Tables whose columns are aligned by hand carry
# "clang-format off". FORMAT names the program; the output of other major versions differs.
set -eu
cd "$(dirname "$0")/.."
tool=${FORMAT:-$(command -v clang-format-14 || command -v clang-format || true)}
[ -n "$tool" ] || { echo "format.sh: clang-format is not installed" >&2; exit 2; }
write=no
if [ "${1:-}" = --write ]; then
    write=yes
    shift
fi
[ $# -gt 0 ] || set -- $(git ls-files 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h')
if [ $write = yes ]; then
    exec "$tool" -i "$@"
fi
bad=0
for f in "$@"; do
    "$tool" "$f" | diff -u --label "$f" --label "$f (formatted)" "$f" - || bad=1
done
exit $bad
