"""Packed rows on disk, as training reads them."""
import json
import pathlib

from training.errors import TrainingError

OPENING = 16  # tokens after <fim_middle>: about as many as a suggestion has


def opening_shares(rows, middle_token: int, end_token: int):
    """For each target of rows [B][T + 1]: 1 / n if it is the n-th token after <fim_middle>, up to OPENING; 0 elsewhere. [B][T]"""
    import numpy

    at = numpy.arange(rows.shape[1])
    last = lambda token: numpy.maximum.accumulate(numpy.where(rows == token, at, -1), 1)
    middle, end = last(middle_token)[:, :-1], last(end_token)[:, :-1]
    distance = at[1:] - middle
    return numpy.where((middle > end) & (distance <= OPENING), 1 / numpy.maximum(distance, 1), 0).astype(numpy.float32)


class Rows:
    """Packed rows on disk; row(i) are `context + 1` token ids. An epoch visits all of them in an order of its own."""

    def __init__(self, folder: pathlib.Path):
        import numpy

        try:
            facts = json.loads((folder / "samples.json").read_text(encoding="utf-8"))
            self.count, self.context = facts["rows"], facts["context"]
            self.fragment_share, self.middle, self.end = facts["fragment_share"], facts["middle"], facts["end"]
            flat = numpy.memmap(folder / "rows.bin", f"<u{facts['bits'] // 8}", mode="r")
            self._rows = flat.reshape(self.count, self.context + 1)
        except FileNotFoundError as error:
            raise TrainingError(f"{folder}: has no samples; make them first: python3 -m training samples") from error
        except (ValueError, KeyError, TypeError) as error:
            raise TrainingError(f"{folder}: its samples are damaged, make them again: {error}") from error
        self._epoch, self._order = None, None

    def batch(self, step: int, size: int):
        """The rows of a training step: a function of the step alone, so that training resumes exactly."""
        import numpy

        return numpy.stack([self._rows[self._at(step * size + number)] for number in range(size)]).astype(numpy.int64)

    def first(self, begin: int, size: int):
        """Rows as they stand on disk: the same for every measurement."""
        import numpy

        return self._rows[begin:begin + size].astype(numpy.int64)

    def opening_shares(self, rows):
        return opening_shares(rows, self.middle, self.end)

    def here(self, step: int, size: int) -> bool:
        """Whether the rows of this step are there: always. Shards may travel one by one."""
        return True

    def highest_token(self) -> int:
        return int(self._rows.max())

    def _at(self, number: int) -> int:
        import numpy

        epoch, at = divmod(number, self.count)
        if epoch != self._epoch:
            self._epoch, self._order = epoch, numpy.random.default_rng(epoch).permutation(self.count)
        return self._order[at]
