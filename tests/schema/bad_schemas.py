#!/usr/bin/env python3
# bad_schemas.py -- apigen refuses wrong schemas, with file, line and reason.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys
import tempfile

import compare

HEAD = "# Docs.\nrequest Test key=1 versions=0-9 flexible=3 to=any safe=yes\n"
GOOD = HEAD + "  a  int32\nresponse\n  b  []thing\n    c  string?4+  2+  = null\n"

# What is wrong, the schema, the line that must be named, words that must be in the message.
CASES = (
    ("unknown key", HEAD.replace("to=any", "for=any"), 2, "to= is missing"),
    ("unknown target", HEAD.replace("to=any", "to=all"), 2, "to=all"),
    ("missing word", HEAD.replace(" safe=yes", ""), 2, "expected"),
    ("safe", HEAD.replace("safe=yes", "safe=maybe"), 2, "maybe"),
    ("key", HEAD.replace("key=1", "key=one"), 2, "'one'"),
    ("empty versions", HEAD.replace("0-9", "9-0"), 2, "are empty"),
    ("no docs", GOOD.replace("# Docs.", ""), 1, "comment"),
    ("no response", HEAD + "  a  int32\n", 3, "response is missing"),
    ("two requests", GOOD + HEAD, 8, "expected"),
    ("field first", "  a  int32\n" + HEAD, 1, "fits nothing"),
    ("indentation", HEAD + "  a  int32\n    b  int32\n", 4, "fits nothing"),
    ("odd indentation", HEAD + "   a  int32\n", 3, "fits nothing"),
    ("no type", HEAD + "  a\n", 3, "a name and a type"),
    ("strange type", HEAD + "  a  []?\n", 3, "is not a type"),
    ("twice", HEAD + "  a  int32\n  a  int8\n", 4, "there twice"),
    ("outside", HEAD + "  a  int32  5-12\n", 3, "outside 0-9"),
    ("unknown word", HEAD + "  a  int32  tagged\n", 3, "'tagged'"),
    ("early tag", HEAD + "  a  int32  2+  tag=0\n", 3, "before version 3"),
    ("same tag", HEAD + "  a  int32  3+  tag=0\n  b  int32  3+  tag=0\n", 4, "taken by a"),
    ("null default", HEAD + "  a  string  = null\n", 3, "may not be null"),
    ("string default", HEAD + "  a  string  = x\n", 3, "only have the default null"),
    ("number default", HEAD + "  a  int32  = many\n", 3, "not a number"),
    ("large default", HEAD + "  a  int8  = 200\n", 3, "does not fit"),
    ("bool default", HEAD + "  a  bool  = 1\n", 3, "neither true nor false"),
    ("empty struct", HEAD + "  a  thing\nresponse\n", 4, "no fields"),
    ("struct in itself", HEAD + "  a  []thing\n    b  []thing\n", 4, "hold itself"),
    ("struct null later", HEAD + "  a  thing?5+\n    b  int8\n", 3, "null in all versions"),
    ("array of bytes null", HEAD + "  a  []bytes?\n  b  struct\nresponse\n", 5, "no fields"),
)


def run(tool, text):
    with tempfile.NamedTemporaryFile("w", suffix=".api") as f:
        f.write(text)
        f.flush()
        done = subprocess.run([tool, "--dump", f.name], capture_output=True, text=True)
        return done.returncode, done.stderr.replace(f.name, "FILE")


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tool = compare.build(pathlib.Path(folder))
        code, said = run(tool, GOOD)
        if code:
            print(f"good schema: {said}")
            failed += 1
        for name, text, line, words in CASES:
            code, said = run(tool, text)
            if code != 1 or not said.startswith(f"FILE:{line}: ") or words not in said:
                print(f"{name}: expected FILE:{line}: ...{words}..., got {code} {said!r}")
                failed += 1
    print(f"{1 + len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
