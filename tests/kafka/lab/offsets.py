"""Asks the offset map, and compares its answers with the records themselves."""
import bisect
import json
import random
import urllib.parse

from . import compare

AT_ONCE = 1000


def ask(h, flow, topic, partition, offsets, to_source=False):
    """The answers of /v1/offsets, in the order of the offsets."""
    answers = []
    for i in range(0, len(offsets), AT_ONCE):
        query = urllib.parse.urlencode({
            "flow": "%s->%s" % (flow.a, flow.b), "topic": topic, "partition": partition,
            "direction": "to-source" if to_source else "to-target",
            "offset": ",".join(str(o) for o in offsets[i:i + AT_ONCE])}, safe=",")
        status, body = h.get("/v1/offsets?" + query, timeout=20)
        assert status == 200, body
        answers += json.loads(body)["answers"]
    return answers


def by_offset(bootstrap, topic, isolation, digest=compare.digest):
    """{partition: {offset: digest}}"""
    table = {}
    for m in compare.Reader(bootstrap, topic, isolation).messages():
        table.setdefault(m.partition(), {})[m.offset()] = digest(m)
    return table


def _check(answer, asked, there, here, in_order):
    """there: records of the answered side by offset; here: of the asked side, whose offsets are in_order."""
    at = bisect.bisect_left(in_order, asked)
    if at == len(in_order):
        assert answer["kind"] == "end", answer
    elif in_order[at] == asked:
        assert answer["kind"] == "exact" and there[answer["to"]] == here[asked], answer
    else:
        assert answer["kind"] == "next" and answer["of"] == in_order[at], (answer, in_order[at])
        assert there[answer["to"]] == here[in_order[at]], answer
    return answer["kind"]


def check(h, flow, n, isolation="read_committed", seed=1, foreign=(), digest=compare.digest):
    """n random offsets in either direction; {kind: how many}. Records of the target in `foreign` (digests) are not ours."""
    dice = random.Random(seed)
    source = by_offset(flow.source, flow.name, isolation, digest)
    target = by_offset(flow.target, flow.remote(), "read_committed", digest)
    ends = [compare.ends(flow.source, flow.name), compare.ends(flow.target, flow.remote())]
    counts = {}
    for p in sorted(source):
        ours = {o: d for o, d in target.get(p, {}).items() if d not in foreign}
        low = ends[0][p][0], ends[1][p][0]
        for side, here, there in ((0, source[p], ours), (1, ours, source[p])):
            in_order = sorted(here)
            offsets = [dice.randrange(low[side], ends[side][p][1]) for _ in range(max(n // len(source) // 2, 1))]
            for asked, answer in zip(offsets, ask(h, flow, flow.name, p, offsets, side == 1)):
                kind = _check(answer, asked, there, here, in_order)
                counts[kind] = counts.get(kind, 0) + 1
    return counts
