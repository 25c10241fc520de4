"""What the benches share: child processes, what they cost, and small statistics."""
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("HELIOSTAT_BUILD") or TOP / "build" / "release")
GB = 1e9


class BenchError(RuntimeError):
    """Something that ends the bench, in words."""


def program(name):
    """A program of the release build: heliostat, or one of bench/."""
    path = BUILD / name if name == "heliostat" else BUILD / "bench" / name
    if not path.exists():
        raise BenchError("%s is not built: cmake --preset release && cmake --build --preset release" % path)
    return str(path)


def cpu_seconds(pid):
    """User and system time of all threads so far, from the scheduler's own clock where there is one."""
    total = 0
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/schedstat" % (pid, task)) as f:
                total += int(f.read().split()[0])
        if total:
            return total / 1e9
    except OSError:
        pass
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_rss_mb(pid):
    """The most memory the process ever held, in MB (10^6)."""
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) * 1024 / 1e6


def places():
    """(processors of what is measured, processors of its peers): apart where there are two, so that where the
    scheduler puts them, and with it what lies in whose cache, does not differ from run to run."""
    cpus = sorted(os.sched_getaffinity(0))
    return (set(cpus[1:]), set(cpus[:1])) if len(cpus) > 1 else (set(cpus), set(cpus))


MEASURED, PEERS = places()


class Child:
    """A process with its output by lines; killed at the end of the `with`."""

    def __init__(self, args, log=None, cpus=None):
        self.args, self.log, self.cpus = [str(a) for a in args], log, cpus

    def __enter__(self):
        errors = open(self.log, "ab") if self.log else None
        self.process = subprocess.Popen(self.args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                        start_new_session=True, text=True,
                                        preexec_fn=self.cpus and (lambda: os.sched_setaffinity(0, self.cpus)))
        self.pid = self.process.pid
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.process.stdout.close()

    def line(self, start):
        """The next line of output that begins so, as {key: value} of its key=value words."""
        for text in self.process.stdout:
            if text.startswith(start):
                return dict(word.split("=", 1) for word in text.split() if "=" in word)
        raise BenchError("%s ended without a line %r\n%s" % (self.args[0], start, self.tail()))

    def stop(self):
        """SIGTERM, then the last line of output as a dictionary."""
        self.process.send_signal(signal.SIGTERM)
        lines = self.process.stdout.read().splitlines()
        self.process.wait(30)
        return dict(word.split("=", 1) for word in lines[-1].split() if "=" in word) if lines else {}

    def tail(self):
        if not self.log:
            return ""
        return pathlib.Path(self.log).read_text(errors="replace")[-3000:]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def folder():
    """A directory that goes away with the `with`."""
    return tempfile.TemporaryDirectory(prefix="heliostat-bench-")


def median(values):
    return statistics.median(values)


def table(head, rows):
    """Text with the columns lined up, numbers to the right."""
    cells = [head] + [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths)))
                     for row in cells)


def say(text):
    print("[%s] %s" % (time.strftime("%H:%M:%S"), text), file=sys.stderr, flush=True)
