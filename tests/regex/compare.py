#!/usr/bin/env python3
# compare.py -- the comparison behind tests/regex/run.sh: the table, random patterns, single characters.
# SPDX-License-Identifier: Apache-2.0
#
#     compare.py DRIVER [--record] [--seed N] [--random N] [--no-characters]
#
# One check per pattern. A refusal of ours and an answer "unsure" or "too slow" pass, but are counted and listed;
# another answer than Java's fails. --record writes tests/data/regex/expected.tsv, which the unit test replays without
# Java: pattern, Java's answers, ours (or E / R and the reason), separated by tabs.
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data/regex"
FULL = os.environ.get("HELIOSTAT_FULL", "") not in ("", "0")
LAST = 0x10FFFF if FULL else 0x1FFFF  # the planes above the first two have hardly anything to tell apart


def lines_of(command):
    run = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{command[0]} ended with {run.returncode}: {run.stderr[-2000:]}")
    return run.stdout.split("\n")[:-1]


def java(*files):
    return lines_of([os.environ.get("JAVA", "java"), "-Xmx512m", HERE / "RegexCheck.java", *files])


def ours(*files):
    return lines_of([options.driver, *files])


def refused(answer):
    return answer[:2] in ("E ", "R ")


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.notes = collections.Counter()

    def add(self, good, what, note=None):
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAILED {what}")
        if note:
            self.notes[note] += 1


def judge(tally, pattern, theirs, mine, names):
    if mine.startswith("R "):
        tally.add(True, pattern, "refused: " + mine[2:].split(" at byte")[0])
    elif refused(theirs) or refused(mine):
        tally.add(refused(theirs) == refused(mine), f"{pattern}  Java: {theirs[:60]}  we: {mine[:80]}")
    else:
        wrong = [n for n, a, b in zip(names, theirs, mine) if a != b and b in "01" and a in "01"]
        note = "unsure" if "?" in mine else "slow" if "S" in mine else None
        tally.add(not wrong, f"{pattern}  on {wrong[:5]}", note)


def compare_files(tally, patterns, names):
    theirs, mine = java(patterns, names), ours(patterns, names)
    wanted = pathlib.Path(names).read_text().split("\n")[:-1]
    rows = list(zip(pathlib.Path(patterns).read_text().split("\n")[:-1], theirs, mine, strict=True))
    for pattern, a, b in rows:
        judge(tally, pattern, a, b, wanted)
    return rows


def characters(line):
    """The set of certain matches of a line of ranges, and the set of unsure ones."""
    sure, unsure = set(), set()
    for word in line.split():
        low, high = word.rstrip("?S").split("-")
        (unsure if word[-1] in "?S" else sure).update(range(int(low, 16), int(high, 16) + 1))
    return sure, unsure


def compare_characters(tally, folder):
    """Every character that both sides' Unicode versions know, against single-character patterns."""
    patterns = DATA / "characters.txt"
    known = pathlib.Path(folder) / "known.txt"
    known.write_text("\\P{Cn}\n")
    assigned, *theirs = java(patterns)
    os.environ["REGEX_LAST"] = "%x" % LAST
    both = characters(assigned)[0] & characters(ours(known)[0])[0]
    for pattern, a, b in zip(patterns.read_text().split("\n"), theirs, ours(patterns)):
        sure, unsure = characters(b)
        wrong = (characters(a)[0] ^ sure) - unsure & both
        tally.add(not wrong & both, f"{pattern}  on {[hex(c) for c in sorted(wrong)[:5]]}", "unsure" if unsure else None)


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        rows = compare_files(tally, DATA / "patterns.txt", DATA / "names.txt")
        if options.record:
            text = "".join("\t".join(row) + "\n" for row in rows)
            (DATA / "expected.tsv").write_text(text)
        for name, count in sorted(tally.notes.items()):
            print(f"table: {count} {name}")
        for seed in range(options.seed, options.seed + options.random):
            patterns, names = f"{folder}/patterns", f"{folder}/names"
            subprocess.run([sys.executable, HERE / "generate.py", str(seed), "1000", patterns, names], check=True)
            compare_files(tally, patterns, names)
        if not options.no_characters:
            compare_characters(tally, folder)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


parser = argparse.ArgumentParser()
parser.add_argument("driver")
parser.add_argument("--record", action="store_true")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--random", type=int, default=3 if FULL else 1)
parser.add_argument("--no-characters", action="store_true")
options = parser.parse_args()
sys.exit(main())
