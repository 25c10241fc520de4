"""Child processes of the lab: each in its own group, killed when the lab ends, however it ends."""
import atexit
import ctypes
import os
import signal
import subprocess

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_mine = set()


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(command, out, keep=False, cwd=None, env=None):
    """Starts a program that writes to the file OUT. Unless keep, it dies with this process, even on SIGKILL.
    Call it on the main thread: the kernel ties the child to the thread that made it."""
    with open(out, "ab") as f:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f, cwd=cwd, env=env,
                                 start_new_session=True, preexec_fn=None if keep else _die_with_parent)
    if not keep:
        _mine.add(child)
    return child


def kill(child, sig=signal.SIGKILL):
    """Sends a signal to the child's whole group; for SIGKILL waits until it is gone."""
    if child is None or child.poll() is not None:
        _mine.discard(child)
        return
    try:
        if sig == signal.SIGKILL:
            os.killpg(child.pid, signal.SIGCONT)
        os.killpg(child.pid, sig)
    except ProcessLookupError:
        pass
    if sig == signal.SIGKILL:
        child.wait()
        _mine.discard(child)


def born(pid):
    """When the process began, in ticks since boot; None when it is gone or a zombie. Tells a reused pid apart."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(") ", 1)[1].split()
            return None if fields[0] in "ZX" else int(fields[19])
    except OSError:
        return None


@atexit.register
def kill_all():
    """Ends everything this process has started and not ended."""
    for child in list(_mine):
        kill(child)
