#!/usr/bin/env python3
# tidy.py -- the checks behind tools/tidy.sh, one function per check.
# SPDX-License-Identifier: Apache-2.0
#
# Each check yields findings "FILE:LINE: what". The last line printed counts checks, not findings.
# Rule zero of style.md: a breach is fine when a comment says why. So a comment that starts with
# "Long because" excuses a long function (in or right above it), file (on its first screen) or
# list of parameters (right above it), and "allowed:" on the same or the previous line excuses a banned call.
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
C_MAX, H_MAX, FUNCTION_MAX, PARAMS_MAX = 800, 300, 70, 6
FOLDERS = ("src", "tests", "tools", "bench")

UNSAFE = re.compile(r"(?<![\w.>])(strcpy|strcat|sprintf|vsprintf|atoi|atol|atoll|strtok|gmtime|localtime|gets)\s*\(")
HEAP = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf)\s*\(")
THREAD = re.compile(r"\b(pthread_\w+|thrd_\w+|mtx_\w+)\b")
WORLD = re.compile(r"(?<![\w.>])(time|clock_gettime|gettimeofday|rand|srand|random|usleep|nanosleep|sleep)\s*\(")
WORDS = re.compile(r"\b(FIX" + r"ME|TO" + r"DO|XX" + r"X)\b(?!\(#\d+\))")
MACHINE = re.compile(r"/wo" + r"rk/(wt|main|shared)|/ho" + r"me/\w+/")
DEFINED = re.compile(r"^(?!static\b|extern\b|typedef\b|struct \w+ \{|enum \w+ \{|union \w+ \{)"
                     r"[A-Za-z_][\w\s*]*?[\s*](\w+)\s*(\(|=|;|\[)", re.M)


class Source:
    """One C file: its lines, and the same text with comments and strings blanked out."""

    def __init__(self, path):
        self.name = path.relative_to(ROOT).as_posix()
        self.base = path.name
        self.text = path.read_text(errors="replace")
        self.lines = self.text.splitlines()
        self.code = blank(self.text)
        self.code_lines = self.code.splitlines()

    def says(self, word, first, last):
        return any(word in line for line in self.lines[max(first, 0):last])


def blank(text):
    """Comments and the content of literals become spaces; line breaks stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def hide(m):
        s = m.group(0)
        inner = re.sub(r"[^\n]", " ", s[1:-1])
        return s[0] + inner + s[-1] if s[0] in "\"'" else re.sub(r"[^\n]", " ", s)

    return pattern.sub(hide, text)


def functions(source):
    """Yields (name, first line, last line, parameters, static) of each definition, from line 1."""
    at = 0
    lines = source.code_lines
    for i, line in enumerate(lines):
        if line.startswith("}"):
            at = i + 1
        if line.rstrip() != "{" or i == 0:
            continue
        start = i - 1
        while start > at and lines[start - 1].strip() and not lines[start - 1].startswith(("#", "}")) \
                and not lines[start - 1].rstrip().endswith((";", "*/")):
            start -= 1
        head = " ".join(lines[start:i])
        m = re.search(r"(\w+)\s*\(", head)
        end = next((j for j in range(i, len(lines)) if lines[j].startswith("}")), len(lines) - 1)
        if m:
            yield m.group(1), start + 1, end + 1, head[m.end() - 1:], head.lstrip().startswith("static")


def parameters(text):
    """How many parameters stand in the first bracket of text."""
    depth, count, inside = 0, 1, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if depth == 0:
            break
        count += c == "," and depth == 1
        inside += c
    return 0 if inside[1:].strip() in ("", "void") else count


def check_sizes(sources):
    "files are not too long"
    for s in sources:
        most = H_MAX if s.base.endswith(".h") else C_MAX
        if len(s.lines) > most and not s.says("Long because", 0, 60):
            yield f"{s.name}:{most}: {len(s.lines)} lines, at most {most}: split it"


def check_functions(sources):
    "functions are not too long"
    for s in sources:
        for name, first, last, _, _ in functions(s):
            if last - first + 1 > FUNCTION_MAX and not s.says("Long because", first - 6, last):
                yield f"{s.name}:{first}: {name} has {last - first + 1} lines, at most {FUNCTION_MAX}"


def check_parameters(sources):
    "functions do not take too many parameters"
    for s in sources:
        if not s.name.startswith("src/"):
            continue
        for name, first, _, rest, _ in functions(s):
            count = parameters(rest)
            if count > PARAMS_MAX and not s.says("Long because", first - 6, first):
                yield f"{s.name}:{first}: {name} takes {count} parameters, at most {PARAMS_MAX}: use a struct"


def check_first_lines(sources):
    "first lines say '/* name -- what it is'"
    for s in sources:
        if not re.match(r"/\* " + re.escape(s.base) + r" -- \S", s.text):
            yield f"{s.name}:1: the first line is not '/* {s.base} -- what it is'"


def check_licence(sources):
    "files carry one SPDX line"
    for s in sources:
        if not s.says("SPDX-License-Identifier: Apache-2.0", 0, 12):
            yield f"{s.name}:2: no SPDX-License-Identifier line"


def banned(sources, pattern, why, exempt, only="src/"):
    for s in sources:
        if not s.name.startswith(only) or s.name.startswith(exempt):
            continue
        for i, line in enumerate(s.code_lines):
            m = pattern.search(line)
            above = i > 0 and not s.code_lines[i - 1].strip()  # a line of comment only
            if m and not line.lstrip().startswith("#") and not s.says("allowed:", i - above, i + 1):
                yield f"{s.name}:{i + 1}: {m.group(1)}: {why}"


def check_unsafe(sources):
    "no unsafe or locale-bound calls"
    yield from banned(sources, UNSAFE, "banned, use str, buf or snprintf", ("-",), only="")


def check_heap(sources):
    "the heap is used through base/alloc.h"
    yield from banned(sources, HEAP, "use base/alloc.h, an arena or a pool", ("src/base/",))


def check_threads(sources):
    "threads are the business of loop and daemon"
    yield from banned(sources, THREAD, "threads belong to src/loop and src/daemon", ("src/loop/", "src/daemon/"))


def check_world(sources):
    "time and chance come from the loop"
    yield from banned(sources, WORLD, "ask the loop, so that a simulated run repeats", ("src/loop/",))


def prefixes():
    rows = {}
    for line in (ROOT / "tools/tidy-prefix.txt").read_text().splitlines():
        words = line.split("#")[0].split(None, 2)
        if len(words) == 3:
            rows[words[0]] = tuple(words[1].split(","))
    return rows


def check_prefixes(sources):
    "non-static symbols begin with the name of their file"
    extra = prefixes()
    for s in sources:
        if not s.name.startswith("src/") or not s.base.endswith(".c"):
            continue
        stem = s.base[:-2]
        good = (stem + "_", stem.split("_")[0] + "_") + extra.get(s.name, ())
        flat = re.sub(r"^#(?:.*\\\n)*.*$", lambda m: "\n" * m.group(0).count("\n"), s.code, flags=re.M)
        for m in DEFINED.finditer(flat):
            name = m.group(1)
            if name not in (stem, "main") and not name.startswith(good):
                line = flat.count("\n", 0, m.start()) + 1
                yield f"{s.name}:{line}: {name} does not begin with {stem}_ (exceptions: tools/tidy-prefix.txt)"
    for name in extra:
        if not (ROOT / name).exists():
            yield f"tools/tidy-prefix.txt:1: {name} does not exist"


def check_words(_):
    "nothing is left open and no machine's paths are written down"
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in files.stdout.splitlines():
        path = ROOT / name
        if not path.is_file() or name.startswith(("tests/data/", "tests/fuzz/corpus/")) or path.stat().st_size > 1 << 20:
            continue
        for i, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            m = WORDS.search(line) or MACHINE.search(line)
            if m:
                yield f"{name}:{i}: {m.group(0)}"


def check_dead(sources):
    "every header and table has a user"
    users = {}
    for s in sources:
        for target in re.findall(r'^\s*#\s*include\s+"([^"]+)"', s.text, re.M):
            users.setdefault(target, set()).add(s.name)
    for s in sources:
        if s.name.startswith("src/") and s.base.endswith((".h", ".def", ".opt")):
            target = s.name[4:]
            own = {s.name[:s.name.rindex(".")] + ".c"}
            if not users.get(target, set()) - (own if s.base.endswith(".h") else set()):
                yield f"{s.name}:1: nobody but its own file includes it"


def check_layers(_):
    "includes follow tools/layers.txt"
    run = subprocess.run([sys.executable, ROOT / "tools/layers.py"], capture_output=True, text=True)
    yield from run.stdout.splitlines()
    if run.returncode and not run.stdout:
        yield f"tools/layers.py:1: {run.stderr.strip()}"


def check_map(_):
    "docs/generated/map.md is up to date"
    path = ROOT / "docs/generated/map.md"
    run = subprocess.run([ROOT / "tools/map.sh"], capture_output=True, text=True)
    if run.returncode or not path.exists() or path.read_text() != run.stdout:
        yield "docs/generated/map.md:1: out of date: tools/map.sh > docs/generated/map.md"


CHECKS = (check_sizes, check_functions, check_parameters, check_first_lines, check_licence, check_unsafe, check_heap,
          check_threads, check_world, check_prefixes, check_words, check_dead, check_layers, check_map)


def main():
    paths = sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*")
                   if p.suffix in (".c", ".h", ".def", ".opt") and p.is_file())
    sources = [Source(p) for p in paths]
    failed = 0
    for check in CHECKS:
        found = list(check(sources))
        for line in found:
            print(line)
        if found:
            print(f"not ok: {check.__doc__}")
            failed += 1
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
