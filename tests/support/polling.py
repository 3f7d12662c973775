"""Waiting for changes by other processes that give no signal."""

import time


kPatienceS = 180  # what a busy machine may take; a good run needs milliseconds


def poll(condition, what, seconds=kPatienceS):
    """The first true value of `condition`; a TimeoutError that names `what` when there is none."""
    deadline, pace_s = time.monotonic() + seconds, 0.005
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not in {seconds} s: {what}")
        time.sleep(pace_s)  # it decides nothing; most conditions start a program, which takes time from what is waited for
        pace_s = min(1.5 * pace_s, 0.1)
    return value
