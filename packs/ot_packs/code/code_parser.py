"""The parser's own process: a file may take all memory, all time, or the process itself with it, but no more.

It reads one request per line and writes one answer per line, both JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from typing import Any

from ast_grep_py import SgRoot
from code_definitions import definitions, references
from code_patterns import Rewriting, WrongPattern, diff, is_broken, matches

MEMORY = 1 << 30
SHOWN = ("name", "kind", "inside", "line", "end_line", "signature")


def main() -> None:
    """Answer until the input ends."""
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        try:
            answer = {"value": answer_one(**json.loads(line))}
        except WrongPattern as error:
            answer = {"wrong": str(error)}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def answer_one(do: str, grammar: str, path: str, text: str, limit: int, **arguments: Any) -> Any:
    """Return what is asked for of one file."""
    root = SgRoot(text, grammar).root()
    if do == "definitions":
        names = frozenset(arguments["names"])
        wanted = (
            each for each in definitions(root, grammar) if each.kind != "impl" and (not names or each.name in names)
        )
        return [{field: getattr(each, field) for field in SHOWN} for each in islice(wanted, limit)]
    if do == "references":
        return [asdict(each) for each in islice(references(text, root, grammar, arguments["names"]), limit)]
    if do == "matches":
        return [*islice(matches(root, grammar, arguments["pattern"]), limit)]
    rewriting = Rewriting(text, root, grammar, arguments["pattern"], arguments["replacement"])
    after = rewriting.result()
    if after == text:
        return None
    if is_broken(SgRoot(after, grammar).root()) and not is_broken(root):
        raise WrongPattern(f"replacement makes code that does not parse, in {path!r}")
    return {"count": rewriting.count, "text": after, "diff": diff(path, text, after)}
