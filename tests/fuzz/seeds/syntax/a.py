from __future__ import annotations
import os, sys as s
from . import util
from ..pkg.mod import A, B as C
from a.b import *
if TYPE_CHECKING:
    from x import Y
LIMIT = 5
TABLE = {"a": 1, "b": 2, "c": 3, "ddddddddddddddddddddddddddddddd": 4, "eeeeeeeee": 5}
class Shape(Base):
    """Doc."""
    sides: int = 3
    name = "x"
    def __init__(self, a, b=1):
        """doc"""
        self.a = a
    @property
    def area(self) -> float:
        # c
        return 1
    class Inner:
        def f(self): pass
@dataclass
class P:
    x: int
    y: int
async def go(a, *, b: int = 2) -> None:
    await x()
def long(
    a,  # first
    b,
): return 1
if __name__ == "__main__":
    hidden = 1
