"""What a pack needs beside its packages, and what of that is not here."""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Callable

type Needs = Callable[[str], tuple[str, ...]]
"""Returns the names that a pack's file lists in ``__ot_requires__``, by kind: secrets, optional_secrets, programs."""

DECLARED = re.compile(r"^__ot_requires__ = (\{.*?\})$", re.M | re.S)


def no_needs(kind: str) -> tuple[str, ...]:
    """Return nothing: the pack needs nothing."""
    return ()


def read_needs(text: str) -> Needs:
    """Return the declarations in a bundled pack's file, without parsing all of it."""
    found = DECLARED.search(text)
    needs: dict[str, list[str]] = ast.literal_eval(found[1]) if found else {}
    return lambda kind: tuple(needs.get(kind, ()))


def missing_needs(needs: Needs, find_secret: Callable[[str], str | None], path: str) -> list[str]:
    """Return what a pack requires and does not have, each with what to do; *path* is the ``PATH``."""
    secrets = [name for name in needs("secrets") if not find_secret(name)]
    programs = [name for name in needs("programs") if not shutil.which(name, path=path)]
    return [
        *(f"the secret {name}: put it into secrets.yaml or the environment" for name in secrets),
        *(f"the program {name}: install it and make sure that it is on the PATH" for name in programs),
    ]
