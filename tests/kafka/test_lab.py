"""Tests of the lab itself: its feeds and comparers must find every kind of damage before they may judge the mirror."""
import time

import pytest

from lab import compare, copier, feed, java, jars, records


@pytest.fixture
def fed(pair, name):
    """A source topic with mixed records and an empty target topic."""
    source, target = (c.bootstrap for c in pair)
    feed.create_topic(source, name, 3)
    feed.create_topic(target, name, 3)
    feed.mixed(source, name, 3000, 3, big=0.01)
    return source, target, name


def test_mixed_feed_has_every_shape(fed):
    source, _, name = fed
    seen = compare.read(source, name)
    values = [m.value() for m in seen]
    headers = [m.headers() or [] for m in seen]
    assert len(seen) == 3000
    assert any(m.key() is None for m in seen) and any(m.key() == b"" for m in seen)
    assert any(v is None for v in values) and any(v == b"" for v in values)
    assert max(len(v) for v in values if v is not None) > 300_000
    assert any(len({n for n, _ in h}) < len(h) for h in headers)
    assert any(v is None for h in headers for _, v in h) and any(v == b"" for h in headers for _, v in h)


def test_mixed_feed_uses_every_codec(pair, fed):
    text = java.dump_log(pair[0], fed[2])
    for codec in records.CODECS:
        assert "compresscodec: " + codec in text.lower()


def test_a_true_copy_is_equal(fed):
    source, target, name = fed
    copier.copy(source, name, target, name, codec="zstd")
    result = compare.topics(source, name, target, name)
    assert result.equal and result.records == 3000, str(result)


@pytest.mark.parametrize("damage,expected", [
    (lambda n, m: 0 if n == 1234 else 1, "missing"),
    (lambda n, m: 2 if n == 77 else 1, "repeated"),
])
def test_damage_is_found(fed, damage, expected):
    source, target, name = fed
    copier.copy(source, name, target, name, change=damage)
    result = compare.topics(source, name, target, name)
    found = {k: getattr(result, k) for k in ("missing", "repeated", "altered", "foreign", "disorder")}
    assert found == {**dict.fromkeys(found, 0), expected: 1}, str(result)


def test_alteration_and_disorder_are_found(pair, name):
    source, target = (c.bootstrap for c in pair)
    for side in (source, target):
        feed.create_topic(side, name, 1)
    now = int(time.time() * 1000)
    rows = [(b"k%d" % i, b"v%d" % i, [("h", b"1"), ("h", b"2")]) for i in range(10)]
    feed.write(source, name, [(*r,) for r in rows])
    stamps = [m.timestamp()[1] for m in compare.read(source, name)]
    assert min(stamps) >= now - 1000
    order = [0, 2, 1, 3, 4, 5, 6, 7, 8, 9]
    from confluent_kafka import Producer
    p = Producer({"bootstrap.servers": target})
    for i in order:
        key, value, headers = rows[i]
        p.produce(name, value, key, 0, headers=headers[::-1] if i == 5 else headers, timestamp=stamps[i])
    p.flush(10)
    result = compare.topics(source, name, target, name)
    assert (result.altered, result.disorder, result.missing, result.repeated) == (1, 1, 0, 0), str(result)


def test_a_difference_of_the_timestamp_type_alone_is_named(pair, name):
    source, target = (c.bootstrap for c in pair)
    feed.create_topic(source, name, 1, {"message.timestamp.type": "LogAppendTime"})
    feed.create_topic(target, name, 1)
    feed.write(source, name, [(b"k", b"%d" % i) for i in range(20)])
    copier.copy(source, name, target, name)
    result = compare.topics(source, name, target, name)
    assert result.altered == result.records == 20 and "only the timestamp type" in str(result)
    assert compare.topics(source, name, target, name, with_type=False).equal


def test_numbered_feed_is_gapless(pair, name):
    source = pair[0].bootstrap
    feed.create_topic(source, name, 4)
    f = feed.Numbered(source, name, 4, rate=0, total=20000)
    f.start()
    assert f.finish() == dict.fromkeys(range(4), 5000)
    place = dict.fromkeys(range(4), 0)
    for m in compare.Reader(source, name).messages():
        assert records.parse_numbered(m.value()) == (f.run_name, m.partition(), place[m.partition()])
        place[m.partition()] += 1
    assert set(place.values()) == {5000}


@pytest.mark.soak
@pytest.mark.xdist_group("releases")
@pytest.mark.parametrize("version", jars.VERSIONS)
def test_every_release_starts_and_survives_a_kill(pool, version, name):
    c = pool.get(version, "target")
    feed.create_topic(c.bootstrap, name, 2)
    feed.write(c.bootstrap, name, [(b"k", b"before")])
    c.kill()
    c.restart()
    feed.write(c.bootstrap, name, [(b"k", b"after")])
    assert [m.value() for m in compare.read(c.bootstrap, name)] == [b"before", b"after"]
    assert name in java.tool(c, "topics", "--list")
