"""Fixtures: clusters that are started once for all tests of a run, and names that no two tests share."""
import itertools
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lab import cpu, heliostat, jars  # noqa: E402
from lab.cluster import Cluster  # noqa: E402

ASAN = heliostat.TOP / "build" / "asan" / "heliostat"
CLUSTERS = ("own_flow", "three", "rounds", "guarded", "forgetful", "filled", "written", "watched", "bare", "seen_through")  # fixtures that start clusters for a few tests
FULL = os.environ.get("HELIOSTAT_FULL", "") not in ("", "0")
_numbers = itertools.count(1)


def pytest_configure(config):
    """The marks that ./test selects by."""
    config.addinivalue_line("markers", "java: compares with the real MirrorMaker 2 or other Java programs")
    config.addinivalue_line("markers", "asan: runs the program that is built with sanitizers")
    config.addinivalue_line("markers", "soak: only with HELIOSTAT_FULL=1 (./test --soak): a variant of what runs always")
    config.addinivalue_line("markers", "long: begins early when tests run side by side")
    config.addinivalue_line("markers", "fc(NAME...): the field cases that a test covers, for -k FC-012")


def group_of(item):
    """Tests that share clusters which the others do not need."""
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark else ""


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items):
    """./test runs tests side by side (--dist loadgroup): a group stays in one process, and the longest tests come first,
    so that no process works alone at the end. Groups start clusters of their own and so need the cores most: they are
    spread among the single tests, which mostly wait."""
    for item in items:
        for mark in item.iter_markers("fc"):
            item.extra_keyword_matches.update(mark.args)
        if not FULL and item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.skip(reason="HELIOSTAT_FULL=1"))
        fixture = next((name for name in CLUSTERS if name in item.fixturenames), None)
        if fixture:
            item.add_marker(pytest.mark.xdist_group(fixture))
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    groups, single = {}, []
    for item in items:
        groups.setdefault(group_of(item), single if not group_of(item) else []).append(item)
    groups.pop("", None)
    step = 0.6 * len(single) / max(len(groups), 1)
    order = [(step * i, group) for i, group in enumerate(sorted(groups.values(), key=live, reverse=True))]
    order += [(i, [item]) for i, item in enumerate(single)]
    items[:] = [item for _, group in sorted(order, key=lambda placed: placed[0]) for item in group]


def live(items):
    """How many of these tests run."""
    return sum(not item.get_closest_marker("skip") for item in items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """The two cores are what the tests wait for: who needs most of them is said at the end."""
    item.cpu = cpu.used()


def pytest_terminal_summary(terminalreporter):
    """The dearest tests."""
    costs = [(dict(r.user_properties)["cpu"], r.nodeid) for r in terminalreporter.stats.get("", ()) if r.when == "teardown"]
    if len(costs) > 8:
        terminalreporter.section("most CPU time, of %.0f s without the shared clusters" % sum(c for c, _ in costs))
        for seconds, test in sorted(costs, reverse=True)[:int(os.environ.get("HELIOSTAT_TEST_COSTS", "8"))]:
            terminalreporter.write_line("%6.1f s  %s" % (seconds, test))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Ends the clusters of a group behind its last test: also an idle broker takes 2 % of a core."""
    result = yield
    if group_of(item) and (nextitem is None or group_of(nextitem) != group_of(item)):
        POOL.stop(keep=PAIR)
    item.user_properties.append(("cpu", cpu.used() - item.cpu))
    return result


def soak(*values):
    """A parameter that only the long runs use, beside others that always run."""
    return pytest.param(*values, marks=pytest.mark.soak)


class Pool:
    """Clusters by (version, name), started when first asked for."""

    def __init__(self):
        self.clusters = {}
        self.waited = set()  # those that were ready once

    def get(self, version, name="", **options):
        """A running cluster; the same one for the same version and name."""
        return self.many([(version, name)], **options)[0]

    def many(self, wanted, **options):
        """Several by (version, name), started at the same time."""
        keys = [(jars.short(version), name) for version, name in wanted]
        clusters = [self.prepare(key, **options) for key in keys]
        for key, c in zip(keys, clusters):
            if key not in self.waited:
                c.wait_ready()
                self.waited.add(key)
        return clusters

    def prepare(self, key, **options):
        """The cluster of (version, name); it may have just been launched."""
        if key not in self.clusters:
            self.clusters[key] = Cluster(key[0], name="%s-%s" % (key[1] or "kafka", key[0]), **options)
            self.waited.discard(key)
            self.clusters[key].launch()
        return self.clusters[key]

    def stop(self, keep=()):
        """Ends all but some."""
        for key in self.clusters.keys() - set(keep):
            self.clusters.pop(key).stop()


POOL = Pool()
PAIR = (("4.3.0", "source"), ("4.3.0", "target"))
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]  # "0", "1" … of the processes that run tests side by side


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config):
    """Tests that run side by side share one pair of clusters, which the first process starts for all."""
    config.pair = [POOL.prepare(key).told() for key in PAIR]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tells a process where the pair is."""
    node.workerinput["pair"] = node.config.pair


def pytest_sessionstart(session):
    """Takes the pair over, in a process that runs tests for another one."""
    for key, told in zip(PAIR, getattr(session.config, "workerinput", {}).get("pair", ())):
        POOL.clusters[key] = Cluster.joined(told)


def pytest_unconfigure():
    """No cluster outlives the run."""
    POOL.stop()


@pytest.fixture
def pool():
    """All shared clusters of the run."""
    return POOL


@pytest.fixture
def pair(pool):
    """Two Kafka 4.3 clusters that tests share; a test that kills brokers starts its own."""
    return pool.many(PAIR)


class Flow:
    """One flow between two clusters with names of its own: a topic NAME, aliases NAMEs and NAMEt."""

    def __init__(self, name, source, target):
        self.name, self.clusters = name, (source, target)
        self.source, self.target = source.bootstrap, target.bootstrap
        self.a, self.b = name + "s", name + "t"

    def config(self, topics=None, **more):
        """The lines of the properties file; further keys with "__" for a dot."""
        return heliostat.config(self.source, self.target, self.a, self.b, topics or self.name, **more)

    def remote(self, topic=None):
        """The name of the copy."""
        return "%s.%s" % (self.a, topic or self.name)


@pytest.fixture
def three(pool):
    """A cluster of three brokers that tests may kill."""
    return pool.get("4.3.0", "three", brokers=3).heal()


@pytest.fixture
def guarded(pool):
    """A target on which ACLs count: nobody is a super user."""
    return pool.get("4.3.0", "guarded", props={"super.users": "User:nobody"})


@pytest.fixture
def forgetful(pool):
    """A target that forgets producer ids after a second, and looks often for transactions that are open for too long."""
    return pool.get("4.3.0", "forgetful", props={"producer.id.expiration.ms": 1000,
                                                 "producer.id.expiration.check.interval.ms": 200,
                                                 "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500})


@pytest.fixture(params=["release", pytest.param("asan", marks=pytest.mark.asan)])
def build(request, monkeypatch):
    """A test that asks for this runs twice: the second time with sanitizers."""
    if request.param == "asan":
        monkeypatch.setenv("HELIOSTAT_BIN", str(ASAN))
    return request.param


@pytest.fixture
def flow(pair, name):
    """A flow between the shared clusters."""
    return Flow(name, *pair)


@pytest.fixture
def own_flow(pool, name):
    """A flow between clusters that tests may kill."""
    return Flow(name, *(c.heal() for c in pool.many([("4.3.0", "own-source"), ("4.3.0", "own-target")])))


@pytest.fixture
def name():
    """A topic and alias part that no other test uses."""
    return "%s%d" % ("abcdefghijklmnopqrstuvwxyz"[int(WORKER) % 26], next(_numbers))


@pytest.fixture(scope="session")
def full():
    """True when the full volumes of the acceptance tests were asked for."""
    return FULL
