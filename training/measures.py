"""The value of a suggestion, and the error of a mean of many."""
import ast
import math
import re

WORD = re.compile(r"\w+")


def exact(text: str, rest: str) -> bool:
    return text.rstrip() == rest


def word_exact(text: str, typed: str, rest: str):
    """Whether the word that the cursor stands in is finished as it was; None where it stands in none."""
    left = WORD.match(rest)
    if left is None or not typed or not WORD.match(typed[-1]):
        return None
    found = WORD.match(text)
    return found is not None and found.group() == left.group()


def similarity(text: str, rest: str) -> float:
    """1 - edit distance / length of the longer: 1 equal, 0 nothing in common."""
    text = text.rstrip()[:4 * len(rest) + 40]  # more is wrong in any case
    return 1 - distance(text, rest) / max(len(text), len(rest), 1)


def distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def parses(cursor, text: str, bytes_max: int = 40_000):
    """Whether the file still parses with `text` in it; None where that is not cheap (Python alone) or it did not before."""
    if cursor.language != "python" or len(cursor.head) + len(cursor.tail) > bytes_max:
        return None
    if not python_parses(cursor.with_text(cursor.rest)):
        return None
    return python_parses(cursor.with_text(text))


def python_parses(text: str) -> bool:
    try:
        ast.parse(text)
        return True
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def mean_and_interval(values: list):
    """(mean, half of its 95 % interval), by the normal approximation; for shares near 0 Wilson's is wilson()."""
    count = len(values)
    if count == 0:
        return 0.0, 0.0
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / max(1, count - 1)
    return mean, 1.96 * math.sqrt(variance / count)


def wilson(successes: int, count: int):
    """(low, high) of the 95 % interval of a share."""
    if count == 0:
        return 0.0, 1.0
    z, share = 1.96, successes / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, middle - half), min(1.0, middle + half)
