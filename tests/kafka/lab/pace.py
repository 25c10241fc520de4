"""How long things may take on the machine as it is now."""
import os


def most(seconds):
    """A promise in seconds, as much longer as there are more runnable processes than cores: promises are about the
    program, not about what else runs here. On a quiet machine the seconds as they are."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
