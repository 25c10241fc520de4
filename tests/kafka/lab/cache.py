"""Where the lab keeps what is worth keeping between runs, and locks for those who fill it."""
import contextlib
import fcntl
import os
import pathlib


def root():
    """The cache folder: $HELIOSTAT_CACHE, else ~/.cache/heliostat."""
    path = os.environ.get("HELIOSTAT_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "heliostat")
    folder = pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextlib.contextmanager
def locked(name):
    """Holds the lock NAME of the cache folder, so that two runs do not fill the same entry at once."""
    with open(root() / (name + ".lock"), "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield
