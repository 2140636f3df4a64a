"""Gives the objects that a zygote keeps for ever reference counts that never change."""

from __future__ import annotations

import ctypes
import gc
import sys
import types

ALIVE = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.TracebackType)
"""These come and go: what they hold now is theirs to give back."""
Count = ctypes.c_uint32


def make_immortal() -> int:
    """Make whatever can be reached immortal, as None is, and return how much that was.

    A child that only looks at an object would else write its reference count, and so copy a whole page of the zygote's.
    An interpreter that counts in another way is left as it is.
    """
    count = Count.from_address(id(None)).value
    if count != sys.getrefcount(None) or sys.byteorder != "little":
        return 0
    addresses = _reachable()
    for address in addresses:
        Count.from_address(address).value = count
    return len(addresses)


def _reachable() -> set[int]:
    found: set[int] = set()
    left = gc.get_objects()
    ours = {id(found), id(left)}
    while left:
        thing = left.pop()
        if id(thing) in found or id(thing) in ours or isinstance(thing, ALIVE):
            continue
        found.add(id(thing))
        left.extend(gc.get_referents(thing))
    return found
