"""What a program asks for that the portable engine lacks or would answer differently from CPython."""

from ot.runtime.engines.portable_gaps.find import find_gaps

__all__ = ["find_gaps"]
