"""CPU time of a test: this process, its children that have ended, and all that it has started and that still run."""
import os
import resource

TICKS = os.sysconf("SC_CLK_TCK")


def stats():
    """{pid: (parent, CPU seconds)} of all processes."""
    out = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            out[int(pid)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS
        except OSError:
            pass
    return out


def used():
    """CPU seconds so far."""
    found = stats()
    mine, size = {os.getpid()}, 0
    while len(mine) > size:
        size = len(mine)
        mine.update(pid for pid, (parent, _) in found.items() if parent in mine)
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (sum(seconds for pid, (_, seconds) in found.items() if pid in mine and pid != os.getpid()) +
            sum(u.ru_utime + u.ru_stime for u in (own, ended)))
