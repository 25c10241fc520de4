#!/bin/sh
# map.sh -- prints the map of files, made from the first line of each: tools/map.sh > docs/generated/map.md
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
echo '# Map of files'
echo
echo 'Made by `tools/map.sh` from the first line of each file; do not edit.'
find src tests tools bench -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.opt' -o -name '*.py' -o -name '*.sh' \) \
    ! -path '*/build/*' ! -path '*/node_modules/*' 2>/dev/null | LC_ALL=C sort | awk '
function said(file,    line, n) {
    while ((getline line < file) > 0 && n++ < 3)
        if (line ~ /^(\/\*|#|\/\/) ?[A-Za-z0-9_.-]+ -- /) {
            close(file)
            sub(/^[^-]* -- /, "", line)
            sub(/ *\*\/ *$/, "", line)
            return line
        }
    close(file)
    return ""
}
{
    text = said($0)
    if (text == "")
        next
    folder = $0
    sub(/\/[^\/]*$/, "", folder)
    if (folder != last) {
        printf "\n## %s\n\n", folder
        last = folder
    }
    name = $0
    sub(/^.*\//, "", name)
    printf "- `%s` %s\n", name, text
}'
