"""Waiting for changes by other processes that give no signal."""

import time


kPatienceS = 180  # what a busy machine may take; a good run needs milliseconds


def poll(condition, what, seconds=kPatienceS):
    """The first true value of `condition`; a TimeoutError that names `what` when there is none."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not in {seconds} s: {what}")
        time.sleep(0.005)  # the pace of asking; it decides nothing
    return value
