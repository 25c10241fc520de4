#!/usr/bin/env python3
# generate.py -- random patterns in Java's syntax, and random names that have a chance to match them.
# SPDX-License-Identifier: Apache-2.0
#
#     generate.py SEED COUNT PATTERNS NAMES
#
# The alphabet is small and the mix is nasty: flags, nested classes, references, quantifiers on odd things.
import random
import sys

LETTERS = list("aabbcABk0129._-") + ["%C3%A9", "%E2%84%AA", "\\.", "\\-", "\\x41", "\\u0062", "\\0101", "\\x{63}", "\\t"]
CLASSES = ["\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\h", "\\v", "\\H", "\\V", "\\p{Lower}", "\\P{Upper}", "\\p{L}", "\\pN",
           "\\p{IsAlphabetic}", "\\p{javaLowerCase}", "\\p{Punct}", "\\p{IsLatin}"]
PLACES = ["^", "$", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\G"]
FLAGS = ["i", "x", "s", "m", "d", "u", "U", "iu", "-i", "i-s", "xi", "-x", "ims", "-u"]
WRONG = ["*", "{", "}", "]", "[", ")", "(", "\\", "\\y", "{2}", "{2,1}", "&&", "#", " ", "(?", "\\k<n>", "\\p{No", "-"]
NAME = list("aaabbbccABk0129._-") + ["%C3%A9", "%E2%84%AA", "%09", "%0A", "%0D", "%20", "&", "#", "^", "]"]


def some(r, most):
    return range(r.randint(0, most))


def class_item(r, depth):
    k = r.random()
    if k < 0.35:
        return r.choice(LETTERS)
    if k < 0.5:
        low, high = sorted(r.sample("abckxABKX012", 2))
        return f"{low}-{high}"
    if k < 0.6:
        return r.choice(CLASSES)
    if k < 0.75 and depth < 3:
        return char_class(r, depth + 1)
    if k < 0.85:
        return "&&"
    if k < 0.9:
        return r.choice(["^", "-", "&", " ", "#", "\\Qa.\\E", "|", "(", "$"])
    return r.choice("abcd")


def char_class(r, depth=0):
    return "[" + ("^" if r.random() < 0.25 else "") + "".join(class_item(r, depth) for _ in range(r.randint(1, 5))) + "]"


def atom(r, depth):
    k = r.random()
    if k < 0.42:
        return r.choice(LETTERS)
    if k < 0.47:
        return "."
    if k < 0.55:
        return r.choice(CLASSES)
    if k < 0.65:
        return char_class(r)
    if k < 0.69:
        return r.choice(PLACES)
    if k < 0.72:
        return f"\\{r.randint(1, 11)}"
    if k < 0.74:
        return r.choice(["\\R", "\\X", "\\Qa.b\\E", "\\Q1\\E", "\\k<n>"])
    if k < 0.77:
        return f"(?{r.choice(FLAGS)})"
    if depth > 3:
        return "a"
    head = r.choice(["(", "(", "(", "(?:", "(?:", "(?<n>", "(?=", "(?!", "(?<=", "(?<!", "(?>", f"(?{r.choice(FLAGS)}:"])
    return head + pattern(r, depth + 1) + ")"


def quantifier(r):
    if r.random() < 0.65:
        return ""
    q = r.choice(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{0}", "{1}"])
    return q + r.choice(["", "", "", "?", "+"])


def pattern(r, depth=0):
    branches = []
    for _ in range(1 if r.random() < 0.7 else r.randint(2, 3)):
        branches.append("".join(atom(r, depth) + quantifier(r) for _ in some(r, 4 if depth else 5)))
    return "|".join(branches)


def main():
    r = random.Random(int(sys.argv[1]))
    with open(sys.argv[3], "w") as out:
        for _ in range(int(sys.argv[2])):
            text = pattern(r)
            if r.random() < 0.08:
                at = r.randint(0, len(text))
                text = text[:at] + r.choice(WRONG) + text[at:]
            if r.random() < 0.1:
                text = "(?" + r.choice(FLAGS) + ")" + text
            out.write(text.replace("%", "%25").replace("%25C3%25A9", "%C3%A9").replace("%25E2%2584%25AA", "%E2%84%AA") + "\n")
    with open(sys.argv[4], "w") as out:
        for i in range(60):
            out.write("".join(r.choice(NAME) for _ in range(0 if i == 0 else r.randint(1, 1 + i // 8))) + "\n")


main()
