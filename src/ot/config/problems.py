"""What is wrong with a configuration, in words: file, line, key, what was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from ot.config.document import Location, Node
from ot.config.models import VERSION, Config
from ot.config.sections import SettingsInvalid, read_settings
from ot.config.setting_types import pack_name
from ot.config.shape import names_at
from ot.errors import ConfigError
from ot.nearest_names import did_you_mean

SHOWN = 20
TEXT = 40

EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    **dict.fromkeys(("dict_type", "mapping_type", "model_type"), "keys with values"),
    "tuple_type": "a list",
    "path_type": "a path",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "{ge:,} or more",
    "less_than_equal": "{le:,} or less",
    "literal_error": "{expected}",
}

FIXED = {
    "background.ask_seconds": "a question of a background run waits a day",
    "limits.calls_in_flight": "at most 32 calls of a run are under way at a time",
    "limits.print_bytes": "1 MiB of what a run prints is kept",
    "logs.files": "three files are kept",
    "logs.max_bytes": "a file of the log has about 5 MB",
    "stats.detail_days": "single runs and calls are kept for 30 days",
    "stats.round_trip_ms": "a round trip to the model is taken for two seconds",
}
"""What were settings, and what holds instead."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and where."""

    place: Location
    message: str

    def __str__(self) -> str:
        return str(ConfigError(self.message, file=self.place.file, line=self.place.line))


def refuse(problems: Sequence[Problem]) -> None:
    """Raise one error that names all *problems*, where there are any.

    Raises:
        ConfigError: There are; its file and line are the first one's.
    """
    if not problems:
        return
    first, *others = problems
    shown = [first.message, *(str(problem) for problem in others[: SHOWN - 1])]
    if len(problems) > SHOWN:
        shown.append(f"and {len(problems) - SHOWN} more")
    raise ConfigError("\n".join(shown), file=first.place.file, line=first.place.line)


def validate(node: Node) -> Config:
    """Return the settings that *node* holds, or raise ConfigError."""
    try:
        return read_settings(node.plain())
    except SettingsInvalid as error:
        refuse([_problem(node, details) for details in error.details])
        raise


def check_file(node: Node) -> None:
    """Refuse what is wrong in one file; what it leaves out, another may give.

    Raises:
        ConfigError: Something is wrong.
    """
    version = node.get("version")
    if version and isinstance(version.value, int) and version.value > VERSION:
        # A newer format may know other keys: nothing that is said of them would help.
        node = Node(node.place, {"version": version})
    try:
        read_settings(node.plain())
    except SettingsInvalid as error:
        wrong = [details for details in error.details if details["type"] != "missing"]
        refuse(sorted((_problem(node, details) for details in wrong), key=lambda problem: problem.place.line))


def clashing_packs(node: Node) -> list[Problem]:
    """Return a problem for every server in use whose pack another one before it gives already."""
    seen: dict[str, Node] = {}
    found: list[Problem] = []
    for name, server in node.at("servers").entries.items():
        if server.at("enabled").value is False:
            continue
        pack = str(server.at("pack").value or pack_name(name))
        if pack in seen:
            first = seen[pack].place
            text = f"servers.{name} becomes the pack '{pack}', as another server does ({first.file}:{first.line})"
            found.append(Problem(server.place, f"{text}: give one of them another name with 'pack:'"))
        seen.setdefault(pack, server)
    return found


def describe_value(value: Any) -> str:
    """Return *value* as an error's text names it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the text {value[:TEXT]!r}" + ("..." if len(value) > TEXT else "")
    if isinstance(value, Mapping):
        return "keys with values"
    return "nothing" if value is None else "a list" if isinstance(value, list) else str(value)


def _problem(node: Node, details: ErrorDetails) -> Problem:
    path = tuple(step for step in details["loc"] if step != "[key]")
    return Problem(node.find(path).place, "; ".join(_sentences(path, details)))


def _sentences(path: tuple[str | int, ...], details: ErrorDetails) -> Iterator[str]:
    key, kind, context = ".".join(str(step) for step in path), details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        yield _unknown_key(key, path)
    elif kind == "missing":
        yield f"{key} is missing"
    elif kind == "value_error":
        yield f"{key}: {context['error']}"
    elif kind in EXPECTED:
        yield f"{key} must be {EXPECTED[kind].format(**context)}, not {describe_value(details['input'])}"
    else:
        yield f"{key}: {details['msg'][:1].lower()}{details['msg'][1:]}"


def _unknown_key(key: str, path: tuple[str | int, ...]) -> str:
    if key in FIXED:
        return f"'{key}' is no setting any more: {FIXED[key]}; take it out"
    wanted, known = str(path[-1]), names_at(path[:-1])
    guess = did_you_mean(wanted, known)
    return f"unknown key '{key}'" + (
        f", did you mean '{guess}'?" if guess else f". Known keys: {', '.join(sorted(known))}"
    )
