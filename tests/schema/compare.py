#!/usr/bin/env python3
# compare.py -- compares our schemas with the definitions inside Kafka's own client jars.
# SPDX-License-Identifier: Apache-2.0
#
#     compare.py [FOLDER]    FOLDER holds kafka-clients-VERSION.jar files
#
# Without a folder the jars are fetched with Maven into ${HELIOSTAT_CACHE:-~/.cache/heliostat}/schemas.
# Our side is read from `apigen --dump`, built here with ${CC:-cc}. One check is one message at one
# version against one release: its fields in order, with type, nullability and tag. Against the newest release
# also names, defaults, what is ignorable, and the range of versions. Leaves with 1 on a difference.
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RELEASES = ("2.8.2", "3.9.1", "4.3.0", "4.4.0")
NEWEST = RELEASES[-1]


def build(folder):
    """Compiles apigen into the folder."""
    tool = folder / "apigen"
    sources = sorted(str(p) for p in (ROOT / "tools").glob("apigen*.c"))
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-o", tool, *sources], check=True)
    return tool


def ours():
    """The rows that apigen makes from our schemas."""
    with tempfile.TemporaryDirectory() as folder:
        tool = build(pathlib.Path(folder))
        schemas = sorted(str(p) for p in (ROOT / "src/wire/api").glob("*.api"))
        return json.loads(subprocess.run([tool, "--dump", *schemas], check=True, stdout=subprocess.PIPE).stdout)


def jars(folder):
    """The path of each release's jar; fetched when no folder was named."""
    if folder:
        paths = {r: pathlib.Path(folder) / f"kafka-clients-{r}.jar" for r in RELEASES}
        missing = [str(p) for p in paths.values() if not p.exists()]
        if missing:
            sys.exit("missing: " + " ".join(missing))
        return paths
    cache = pathlib.Path(os.environ.get("HELIOSTAT_CACHE") or pathlib.Path.home() / ".cache/heliostat") / "schemas"
    cache.mkdir(parents=True, exist_ok=True)
    for r in RELEASES:
        if not (cache / f"kafka-clients-{r}.jar").exists():
            subprocess.run(["mvn", "-q", "dependency:copy", f"-Dartifact=org.apache.kafka:kafka-clients:{r}",
                            f"-DoutputDirectory={cache}"], check=True)
    return {r: cache / f"kafka-clients-{r}.jar" for r in RELEASES}


def theirs(jar):
    """Definition by name, as in FetchRequest."""
    found = {}
    with zipfile.ZipFile(jar) as z:
        for name in z.namelist():
            if re.fullmatch(r"common/message/\w+(Request|Response)\.json", name):
                text = z.read(name).decode()
                text = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda m: m.group(1) or "", text)
                # Some definitions end with a bracket too many, which Kafka's own reader does not see.
                d, _ = json.JSONDecoder().raw_decode(text.strip())
                found[d["name"]] = d
    return found


def span(text):
    """'3+', '2-4', '5' or 'none' as first and last version."""
    m = re.fullmatch(r"(\d+)(\+|-(\d+))?", text or "")
    if not m:
        return (1 << 15, -1)
    first = int(m.group(1))
    return first, (1 << 15) if m.group(2) == "+" else int(m.group(3) or first)


def has(text, version):
    first, last = span(text)
    return first <= version <= last


def truth(value):
    return str(value).lower() == "true"


def snake(name):
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def default_of(kind, value):
    """Defaults are written in several ways; this is one of them."""
    value = "" if value is None else str(value)
    if value == "null":
        return None
    if kind.startswith(("int", "uint")):
        return int(value or "0", 0)
    return truth(value) if kind == "bool" else value


def their_fields(fields, version, shared):
    """What Kafka's definition puts on the wire at this version."""
    out = []
    for f in fields:
        if not has(f["versions"], version):
            continue
        kind = f["type"]
        element = kind.removeprefix("[]")
        row = {"name": snake(f["name"]), "null": has(f.get("nullableVersions"), version), "fields": None}
        if element[0].isupper():
            row["fields"] = their_fields(f.get("fields") or shared[element], version, shared)
            kind = kind.replace(element, "struct")
        row["type"] = kind
        row["default"] = default_of(kind, f.get("default"))
        row["tag"] = f["tag"] if has(f.get("taggedVersions"), version) else -1
        row["ignorable"] = truth(f.get("ignorable"))
        out.append(row)
    return out


def our_fields(fields, version):
    """The same from our rows."""
    out = []
    for f in fields:
        if not f["since"] <= version <= f["until"]:
            continue
        out.append({"name": f["name"], "type": f["type"], "tag": f["tag"],
                    "null": 0 <= f["null_since"] <= version,
                    "default": default_of(f["type"], f.get("default")),
                    "ignorable": f.get("ignorable", False),
                    "fields": our_fields(f["fields"], version) if "fields" in f else None})
    return out


def differences(a, b, where, newest):
    """Sentences about what is not the same in our fields a and theirs b.

    Two things may differ from an older release, since they are not on the wire: tags added to a version after
    its release, and the default of a field without tag. Names and `ignorable` have changed over time too.
    """
    if not newest:
        known = {f["tag"] for f in b}
        a = [f for f in a if f["tag"] < 0 or f["tag"] in known]
    if len(a) != len(b):
        yield f"{where}: ours are {[f['name'] for f in a]}, theirs {[f['name'] for f in b]}"
        return
    for x, y in zip(a, b):
        columns = ["type", "null", "tag"] + (["name", "ignorable", "default"] if newest else [])
        for column in columns + (["default"] if x["tag"] >= 0 and not newest else []):
            if x[column] != y[column]:
                yield f"{where}.{y['name']}: {column} is {x[column]!r}, theirs {y[column]!r}"
        if x["fields"] is not None and y["fields"] is not None:
            yield from differences(x["fields"], y["fields"], f"{where}.{y['name']}", newest)


def stable_range(request):
    first, last = span(request["validVersions"])
    return first, last - truth(request.get("latestVersionUnstable"))


def compare_frame(api, request, release):
    """Key, first flexible version and, for the newest, the range of versions."""
    where = f"{release} {api['name']}"
    if api["key"] != request["apiKey"]:
        yield f"{where}: key is {api['key']}, theirs {request['apiKey']}"
    flexible = span(request.get("flexibleVersions"))[0]
    if min(api.get("flexible", 1 << 15), 1 << 15) != flexible:
        yield f"{where}: flexible from {api.get('flexible')}, theirs {flexible}"
    if release == NEWEST and (api["min"], api["max"]) != stable_range(request):
        yield f"{where}: versions are {api['min']}-{api['max']}, theirs {stable_range(request)}"


def compare_api(api, definitions, release):
    """Yields a list of differences for each check."""
    request = definitions.get(api["name"] + "Request")
    if not request:
        return
    yield list(compare_frame(api, request, release))
    first, last = stable_range(request)
    for half in ("request", "response"):
        d = definitions[api["name"] + half.capitalize()]
        shared = {s["name"]: s["fields"] for s in d.get("commonStructs", [])}
        for version in range(max(first, api["min"]), min(last, api["max"]) + 1):
            where = f"{release} {d['name']} v{version}"
            yield list(differences(our_fields(api[half], version), their_fields(d["fields"], version, shared),
                                   where, release == NEWEST))


def main():
    apis = ours()
    passed = failed = 0
    for release, jar in jars(sys.argv[1] if len(sys.argv) > 1 else None).items():
        definitions = theirs(jar)
        for api in apis:
            for found in compare_api(api, definitions, release):
                passed += not found
                failed += bool(found)
                for line in found:
                    print(line)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
