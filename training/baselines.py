"""Suggestions without a model: repeat the most similar earlier line of the file."""
import difflib

LINES_MAX = 2000  # back from the cursor


def similar_line(cursor) -> str:
    """The rest of the earlier line that begins as the cursor's does. Of several, the one whose previous line is most like the
    one before the cursor's; of equal ones, the last. "" where none begins so."""
    typed = cursor.typed_line.lstrip()
    lines = (cursor.head + cursor.before + cursor.increment).split("\n")[:-1][-LINES_MAX:]
    stripped = [line.strip() for line in lines]
    above = stripped[-1] if stripped else ""
    candidates = [at for at, line in enumerate(stripped) if line and line.startswith(typed)]
    if not candidates:
        return ""
    best = max(candidates, key=lambda at: (likeness(stripped[at - 1] if at else "", above), at))
    return (stripped[best] if cursor.typed_line else lines[best].rstrip())[len(typed):]


def likeness(a: str, b: str) -> float:
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    return 1.0 if a == b else matcher.quick_ratio()
