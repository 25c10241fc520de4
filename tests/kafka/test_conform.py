"""The same request scripts to a real broker and to the simulated one of tests/sim: what they answer is equal."""
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = sorted(str(p) for p in (TOP / "tests" / "conform" / "scripts").glob("*.txt"))
FULL = os.environ.get("HELIOSTAT_FULL", "") not in ("", "0")
VERSIONS = ["2.8.2", "3.9.1", "4.4.0"] if FULL else ["4.4.0"]
pytestmark = pytest.mark.xdist_group("releases")


def program():
    """The player of scripts."""
    return os.environ.get("HELIOSTAT_CONFORM") or str(TOP / "build" / "release" / "tests" / "conform" / "conform")


def play(kind, where, restart=None):
    """What a broker answered: {script: text}. restart is called when the scripts want one."""
    child = subprocess.Popen([program(), where, kind, *SCRIPTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    text = ""
    for line in child.stdout:
        if line == "RESTART\n":
            restart()
            child.stdin.write("done\n")
            child.stdin.flush()
        else:
            text += line
    errors = child.stderr.read()
    assert child.wait(10) == 0, errors
    parts = [part.split("\n", 1) for part in text.split("== ")[1:]]
    return {head: body for head, body in parts}


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_are_equal(pool, version):
    """Field by field, but for those that tests/conform/README.md names."""
    cluster = pool.get(version, "source")

    def restart():
        cluster.kill(1)
        cluster.restart(1)

    kind = cluster.version[:3]
    real = play(kind, cluster.bootstrap, restart)
    simulated = play(kind, "--sim")
    assert len(real) >= 60
    differ = [name for name in real if real[name] != simulated.get(name)]
    assert not differ, "\n\n".join("%s\nreal:\n%s\nsimulated:\n%s" % (n, real[n], simulated.get(n)) for n in differ)
