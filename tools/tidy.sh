#!/bin/sh
# tidy.sh -- checks what style.md asks of every file; prints FILE:LINE: what, then 'N passed, N failed'.
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/.."
exec python3 tools/tidy.py "$@"
