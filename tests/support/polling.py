"""Waiting for changes by other processes that give no signal."""

import time


kPatienceS = 180  # what a busy machine may take; a good run needs milliseconds


def looks(seconds=kPatienceS):
    """Gives a turn to look, again and again, until the time is over. The pace decides nothing; it falls, because most looks start a
    program, which takes time from what is waited for.
    """
    deadline, pace_s = time.monotonic() + seconds, 0.005
    while True:
        yield
        if time.monotonic() > deadline:
            return
        time.sleep(pace_s)
        pace_s = min(1.5 * pace_s, 0.1)


def poll(condition, what, seconds=kPatienceS):
    """The first true value of `condition`; a TimeoutError that names `what` when there is none."""
    for _ in looks(seconds):
        if value := condition():
            return value
    raise TimeoutError(f"not in {seconds} s: {what}")
