"""A run's progress: a live line, and a plot of its losses."""
import pathlib
import sys
import time

from training.files import whole_file

LINE_EVERY_S = 1.0
LOG_EVERY_S = 30.0  # where nobody looks at a terminal, after a first line that says that it trains


class ProgressLine:
    def __init__(self, steps: int, tokens_a_step: int):
        self._steps, self._tokens_a_step = steps, tokens_a_step
        self._begin = self._shown = time.monotonic()
        self._done = 0
        self._live = sys.stderr.isatty()
        self._every = LINE_EVERY_S

    def step(self, step: int, loss: float, validation) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._shown < self._every:
            return
        self._shown = now
        self._every = LINE_EVERY_S if self._live else LOG_EVERY_S
        speed = self._done / (now - self._begin)
        left = (self._steps - step) / speed
        line = (f"step {step} of {self._steps}  loss {loss:.3f}" + (f"  validation {validation:.3f}" if validation else "")
                + f"  {speed * self._tokens_a_step:.0f} tokens/s  {left / 60:.0f} min left")
        print(f"\r{line:<100}" if self._live else line, end="" if self._live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._live:
            print(file=sys.stderr)


def plot(curves: dict, path: pathlib.Path) -> bool:
    """curves: name -> (tokens, training losses, [(tokens, validation loss)]). False where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, (tokens, training, validation) in curves.items():
        line, = axes.plot([count / 1e6 for count in tokens], smoothed(training), label=f"{name}, training", linewidth=1, alpha=0.6)
        axes.plot([count / 1e6 for count, _ in validation], [loss for _, loss in validation], label=f"{name}, validation",
                  marker=".", color=line.get_color())
    axes.set_xlabel("million tokens")
    axes.set_ylabel("nats a token")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=80)
    pyplot.close(figure)
    return True


def smoothed(values: list, keep: float = 0.95) -> list:
    out, mean = [], values[0] if values else 0.0
    for value in values:
        mean = keep * mean + (1 - keep) * value
        out.append(mean)
    return out
