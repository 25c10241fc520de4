#!/usr/bin/env python3
# layers.py -- fails on every #include in src/ that tools/layers.txt does not allow.
# SPDX-License-Identifier: Apache-2.0
#
# Prints FILE:LINE: what for each finding, and leaves with 1 if there was one. Includes are written
# from src/ ("base/buf.h"); a .c file includes its own header before any other of ours.
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_rules():
    """Maps a folder (or a file right in src/) to what it may include: folders or single headers."""
    rules = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if words:
            rules[words[0]] = set(words[1:])
    return rules


def findings_of(path, rules):
    place = path.relative_to(SRC).as_posix()
    layer = place.split("/")[0]
    own = place[:-2] + ".h" if place.endswith(".c") else None
    seen = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        target = m.group(1)
        where = f"src/{place}:{number}"
        seen += 1
        if "/" not in target:
            yield f'{where}: "{target}" is not written from src/ (say "{layer}/{target}")'
            continue
        to = target.split("/")[0]
        if layer not in rules:
            yield f"{where}: {layer} has no line in tools/layers.txt"
        elif to != layer and to not in rules[layer] and target not in rules[layer]:
            yield f"{where}: {layer} may not include {target}"
        mine = own and target in (own, own[:-2] + "_int.h", own[:-2] + "_internal.h")
        if own and seen == 1 and not mine and (SRC / own).exists():
            yield f"{where}: {own} has to be the first include of its own file"


def main():
    rules = read_rules()
    count = 0
    for path in sorted(SRC.rglob("*")):
        if path.suffix in (".c", ".h", ".def", ".opt"):
            for finding in findings_of(path, rules):
                print(finding)
                count += 1
    return 1 if count else 0


sys.exit(main())
