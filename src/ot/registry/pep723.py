"""PEP 723: what a pack's file says about its dependencies, in comments that are TOML."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any, cast

BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
OPENING = re.compile(r"(?m)(?:^|(?<=\r))# /// script$")
"""Where a block begins for us, or for uv, to which a carriage return alone is the end of a line here."""
SEPARATOR = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What some take for the end of a line and others do not: uv and we must not read two different files."""
TOML_LINE = re.compile(r"\(at line (\d+),")
OWN_CHOICES = frozenset({"exclude-newer", "prerelease", "resolution"})
"""What a file may tell uv without changing where packages come from."""


@dataclass(frozen=True, slots=True)
class ScriptMetadata:
    """What a file declares about its dependencies."""

    present: bool = False
    dependencies: tuple[str, ...] = ()
    requires_python: str = ""
    needs_consent: bool = False
    """True when packages would come from anywhere but the user's own index."""


def script_metadata(text: str) -> ScriptMetadata | None:
    """Return the file's metadata, or None if it is malformed: ``script_problem`` says how."""
    try:
        return _read(text)
    except ValueError:
        return None


def script_problem(text: str) -> str:
    """Return what is wrong with the file's metadata, and on which line, or nothing."""
    try:
        _read(text)
    except ValueError as error:
        return str(error)
    return ""


def _read(text: str) -> ScriptMetadata:
    block = _parse(text)
    return ScriptMetadata() if block is None else _metadata(block)


def _parse(text: str) -> dict[str, Any] | None:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    openings = [match.start() for match in OPENING.finditer(text)]
    if not openings:
        return None
    if len(openings) > 1:
        raise ValueError(f"line {_line(text, openings[1])}: there is a second '# /// script' block")
    block = next((match for match in BLOCK.finditer(text) if match.start() == openings[0]), None)
    if block is None:
        raise ValueError(
            f"line {_line(text, openings[0])}: the '# /// script' block is not closed by a line '# ///', "
            "or a line in between does not start with '# '"
        )
    if found := SEPARATOR.search(text, max(block.start() - 1, 0), block.end()):
        line, mark = _line(text, found.start()), f"U+{ord(found[0]):04X}"
        raise ValueError(f"line {line}: {mark} stands in the '# /// script' block, end its lines with a newline alone")
    return _toml(block["content"], _line(text, block.start("content")))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _toml(content: str, first_line: int) -> dict[str, Any]:
    lines = [line[2:] if line.startswith("# ") else line[1:] for line in content.removesuffix("\n").split("\n")]
    try:
        return tomllib.loads("\n".join(lines))
    except RecursionError:
        raise ValueError(f"line {first_line}: the '# /// script' block is nested too deeply") from None
    except ValueError as error:
        place = TOML_LINE.search(str(error))
        line = first_line + (int(place[1]) if place else len(lines)) - 1
        reason = str(error).partition(" (at ")[0]
        raise ValueError(f"line {line}: the '# /// script' block is not valid TOML: {reason}") from None


def _metadata(block: dict[str, Any]) -> ScriptMetadata:
    dependencies = _dependencies(block.get("dependencies", []))
    direct = [requirement for requirement in dependencies if _is_direct(requirement)]
    return ScriptMetadata(
        present=True,
        dependencies=dependencies,
        requires_python=_requires_python(block.get("requires-python", "")),
        needs_consent=bool(direct) or _chooses_sources(block),
    )


def _dependencies(given: object) -> tuple[str, ...]:
    values = cast("list[object]", given) if isinstance(given, list) else [None]
    strings = tuple(value for value in values if isinstance(value, str))
    if len(strings) < len(values):
        raise ValueError("'dependencies' in the '# /// script' block must be a list of strings")
    return strings


def _is_direct(requirement: str) -> bool:
    # Only a pack with dependencies pays for the import.
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 - see above

    try:
        return Requirement(requirement).url is not None
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"the dependency '{requirement[:200]}' is not valid: {reason}") from None


def _requires_python(given: object) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415 - as above

    if not isinstance(given, str):
        raise ValueError("'requires-python' in the '# /// script' block must be a string")
    try:
        SpecifierSet(given)
    except InvalidSpecifier:
        raise ValueError(f"requires-python = '{given[:200]}' is not valid; write it as '>=3.12'") from None
    return given


def _chooses_sources(block: dict[str, Any]) -> bool:
    tool = block.get("tool")
    own: object = cast("dict[str, object]", tool).get("uv") if isinstance(tool, dict) else None
    return isinstance(own, dict) and not OWN_CHOICES.issuperset(cast("dict[str, object]", own))
