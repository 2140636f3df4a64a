"""Cassette: what a run saw of the world, as one file of YAML; a stranger's holds data and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ot.config.document import Bounds, parse, scalar
from ot.config.setting_types import NAME, RESERVED
from ot.errors import ConfigError
from ot.files.private_file import read_regular, write_private
from ot_sdk.redaction import redact_value
from ot_sdk.tagged import Encoder, decode

BOUNDS = Bounds(size=16 << 20, nodes=400_000, depth=80)
SUFFIX: Final = ".cassette.yaml"
STEP = "open:"
"""What a step of Python's own file functions is called, before its name."""
TOLD = {"print": "text", "note": "text", "content": "block", "meta": "meta"}
"""What a tool tells beside its value, each with what it must hold."""
KINDS = ("text", "image", "audio", "resource", "resource_link")
OWN = ("ot", "proj")
MOST_SECONDS = 10_000_000


def _check_pack(name: str) -> str:
    if not NAME.match(name) or (name in RESERVED and name not in OWN):
        raise ValueError(f"{name[:60]!r} cannot be a pack's name")
    return name


def _check_tool(name: str) -> str:
    pack, dot, tool = name.partition(".")
    if not name.startswith(STEP) and not (dot and tool and _check_pack(pack)):
        raise ValueError(f"{name[:60]!r} names no tool")
    return name


def _check_value(value: Any) -> Any:
    try:
        decode(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"a value is malformed: {error}") from None
    return value


def _check_told(told: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    for what, details in told.items():
        found = decode(_check_value(details))
        part: Any = cast("dict[str, Any]", found).get(TOLD.get(what, "")) if isinstance(found, dict) else None
        if not (_is_block(part) if what == "content" else type(part) is (dict if what == "meta" else str)):
            raise ValueError(f"a tool tells one of {', '.join(TOLD)}, as MCP writes it")
    return told


def _is_block(block: Any) -> bool:
    """Return whether a block is made as MCP makes them: replies take it as it is."""
    if not isinstance(block, dict) or cast("dict[str, Any]", block).get("type") not in KINDS:
        return False
    inner = cast("dict[str, Any]", block).get("resource", {})
    parts: dict[str, Any] = {**block, **inner} if isinstance(inner, dict) else {"uri": 0}
    return all(type(parts.get(name, "")) is str for name in ("text", "data", "mimeType", "uri", "blob", "name"))


class RecordedCall(BaseModel):
    """One call of a program: what it asked, and what it was answered, as JSON types without secrets."""

    model_config = ConfigDict(extra="forbid", strict=True)

    call: Annotated[str, AfterValidator(_check_tool)]
    args: Annotated[list[Any], AfterValidator(_check_value)] = []
    kwargs: Annotated[dict[str, Any], AfterValidator(_check_value)] = {}
    task: int = Field(default=0, ge=0, le=MOST_SECONDS)
    """Which task of the program made it: the calls of one are made in order."""
    at: float = Field(default=0.0, ge=0, le=MOST_SECONDS, allow_inf_nan=False)
    """When it was answered, in seconds after the start."""
    told: list[Annotated[dict[str, dict[str, Any]], AfterValidator(_check_told)]] = []
    """What the tool printed and showed meanwhile."""
    returns: Annotated[Any, AfterValidator(_check_value)] = None
    raises: str = ""
    message: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether it came to its end; else it was under way when the program ended."""
        return bool(self.raises) or "returns" in self.model_fields_set

    @property
    def key(self) -> str:
        """What a call must have in common with it to be answered by it."""
        return f"{self.call} {json.dumps([self.args, self.kwargs], sort_keys=True)}"


class Cassette(BaseModel):
    """What one run saw: its clock, its packs and its calls; and what it came to."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cassette: Literal[1]
    engine: str = ""
    clock: Annotated[
        AwareDatetime,
        BeforeValidator(lambda text: datetime.fromisoformat(str(text))),
        Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(2200, 1, 1, tzinfo=UTC)),
    ]
    seed: int = Field(ge=0, lt=1 << 32)
    program: str = ""
    """What was run, if that is known."""
    packs: list[Annotated[str, AfterValidator(_check_pack)]] = []
    members: dict[Annotated[str, AfterValidator(_check_tool)], str] = {}
    """What the program looked up without calling it: ``function``, ``missing``, or a project's path."""
    calls: list[RecordedCall] = []
    result: dict[str, Any] = {}

    def text(self) -> str:
        """Return the file's text."""
        return _dump(self.model_dump(exclude_unset=True) | {"clock": self.clock.isoformat()})

    def save(self, path: Path, redact: Callable[[str], str]) -> str:
        """Write it to *path*, for its owner alone, or return why it is not written."""
        text = self.text()
        try:
            parse(text.encode(), path, BOUNDS)
            if redact(text) != text:
                return "a secret would stand in the file"
            write_private(path, text)
        except (ConfigError, OSError) as error:
            return error.message if isinstance(error, ConfigError) else str(error)
        return ""


def encode_plain(value: Any, redact: Callable[[str], str]) -> Any:
    """Return plain data as JSON types, without secrets; raises NotPlain where some part is not plain data."""
    return Encoder().convert(redact_value(value, redact))


def read_cassette(path: Path) -> Cassette:
    """Return the cassette in the file *path*; raises ConfigError, with file and line, or OSError if it is none."""
    root = parse(read_regular(path, BOUNDS.size, follow=True).data, path, BOUNDS)
    try:
        return Cassette.model_validate(root.plain())
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
        line = root.find(wrong["loc"]).place.line or 1
        message = f"{'.'.join(map(str, wrong['loc']))[:100]}: {wrong['msg'].removeprefix('Value error, ')}"
        raise ConfigError(f"not a cassette: {message}", file=path, line=line) from None


def _dump(data: Any) -> str:
    """Return what ``parse`` reads as the same: texts of many lines as they are, words that are no text quoted."""
    import yaml  # noqa: PLC0415 - for those alone who record

    def write_text(dumper: Any, text: str) -> Any:
        lines = "\n" in text and not any(mark in text for mark in "\r\x85\u2028\u2029\ufeff")
        plain = text.isprintable() and type(scalar(text)) is str
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if lines else None if plain else '"')

    def write_number(dumper: Any, number: float) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:float", repr(number))

    def ignore_aliases(dumper: Any, data: Any) -> bool:
        return True

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    dumper: Any = type("Dumper", (base,), {"ignore_aliases": ignore_aliases})
    dumper.add_representer(str, write_text)
    dumper.add_representer(float, write_number)
    return yaml.dump(data, Dumper=dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
