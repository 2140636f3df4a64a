"""Writes out what the configuration names: ``$name key=value`` as its template says, and aliases as their tools."""

from __future__ import annotations

import ast
import io
import math
import re
import secrets
import tokenize
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from ot.config.models import Snippet
from ot.errors import SnippetError
from ot.nearest_names import did_you_mean, listing
from ot.runtime.program import Program
from ot.runtime.snippet_renderer import SnippetRenderer

MAX_ARGUMENTS = 200
INVOCATION = re.compile(r"\$(?P<name>[A-Za-z][A-Za-z0-9_]*)(?P<rest>(?=\s|\Z).*)", re.DOTALL)
KEY = re.compile(r"(?:^|(?<=[ \t]))([A-Za-z]\w*)=")
LINE = re.compile(r"([A-Za-z]\w*)[ \t]*:[ \t]*(.*)")

_TYPES: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": lambda text: _finite(float(text)),
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false"}


@dataclass(frozen=True)
class Invocation:
    """A snippet's name and the arguments given to it, as text."""

    name: str
    arguments: Mapping[str, str]


class Snippets:
    """The configured snippets, ready to be expanded."""

    def __init__(self, snippets: Mapping[str, Snippet], renderer: SnippetRenderer) -> None:
        """Expand *snippets* with *renderer*."""
        self._snippets = snippets
        self._renderer = renderer

    async def expand(self, command: str) -> str:
        """Return the program for a command that invokes a snippet, any other command unchanged.

        Raises:
            SnippetError: The snippet is unknown, its arguments do not fit, or its template fails.
        """
        if not command.lstrip().startswith("$") or command.lstrip().startswith("${"):
            return command
        invocation = parse_invocation(command.strip())
        snippet = self._snippets.get(invocation.name)
        if snippet is None:
            guess = did_you_mean(invocation.name, list(self._snippets))
            hint = f", did you mean '${guess}'?" if guess else "."
            known = listing(invocation.name, list(self._snippets)) or "none are configured"
            raise SnippetError(f"there is no snippet '${invocation.name}'{hint} Snippets: {known}")
        values = snippet_values(invocation, snippet)
        marker = f"_v{secrets.token_hex(8)}_"
        rendered = await self._renderer.render(snippet.body, values, marker)
        if "error" in rendered:
            raise SnippetError(f"snippet '${invocation.name}': {rendered['error']}")
        of_text = {name for name, param in snippet.params.items() if param.type == "str"}
        texts = {text for key, text in invocation.arguments.items() if key in of_text}
        return place_values(rendered["text"], rendered["values"], marker, invocation.name, texts)


def parse_invocation(command: str) -> Invocation:
    """Return the name and arguments of ``$name k=v k2="v w"``, or of ``$name`` and lines ``k: v``.

    Raises:
        SnippetError: It is neither.
    """
    found = INVOCATION.fullmatch(command)
    if not found:
        raise SnippetError("a snippet is called as $name key=value")
    head, _, lines = found["rest"].partition("\n")
    arguments = _arguments_in_line(head) if head.strip() else _arguments_in_lines(lines)
    if head.strip() and lines.strip():
        raise SnippetError("nothing may follow a snippet's line: put it into the snippet, or write the code yourself")
    return Invocation(found["name"], arguments)


def _arguments_in_line(text: str) -> dict[str, str]:
    keys = list(islice(KEY.finditer(text), MAX_ARGUMENTS + 1))
    _require_few(len(keys))
    if not keys or text[: keys[0].start()].strip():
        raise SnippetError(f"a snippet's arguments are key=value, not '{text.strip()[:80]}'")
    ends = [key.start() for key in keys[1:]] + [len(text)]
    return _once(((key[1], _unquote(text[key.end() : end].strip())) for key, end in zip(keys, ends, strict=True)))


def _arguments_in_lines(text: str) -> dict[str, str]:
    block, _, after = text.strip("\n").partition("\n\n")
    if after.strip():
        raise SnippetError(
            "nothing may follow a snippet's arguments: put it into the snippet, or write the code yourself"
        )
    _require_few(block.count("\n"))
    pairs: list[tuple[str, str]] = []
    for line in block.split("\n") if block.strip() else []:
        found = LINE.fullmatch(line.strip())
        if not found or line[:1].isspace():
            raise SnippetError(f"a snippet's arguments are lines 'key: value', not '{line.strip()[:80]}'")
        pairs.append((found[1], _unquote(found[2].strip())))
    return _once(pairs)


def _require_few(count: int) -> None:
    if count > MAX_ARGUMENTS:
        raise SnippetError(f"a snippet has at most {MAX_ARGUMENTS} arguments")


def _once(pairs: Any) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for key, value in pairs:
        if key in arguments:
            raise SnippetError(f"the argument '{key}' is given twice")
        arguments[key] = value
    return arguments


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return value.replace("\\=", "=")


def snippet_values(invocation: Invocation, snippet: Snippet) -> dict[str, Any]:
    """Return a value for every parameter.

    Raises:
        SnippetError: One is missing or unknown, or is not of its declared type.
    """
    # A snippet that declares no parameters takes those that its template names.
    if snippet.params and (unknown := [name for name in invocation.arguments if name not in snippet.params]):
        raise SnippetError(
            f"${invocation.name} has no parameter '{unknown[0][:50]}'; it takes: {', '.join(snippet.params)}"
        )
    values: dict[str, Any] = {name: param.default for name, param in snippet.params.items() if param.optional}
    values |= {name: _convert(text, invocation.name, name, snippet) for name, text in invocation.arguments.items()}
    if missing := [name for name in snippet.params if name not in values]:
        raise SnippetError(f"${invocation.name} needs {', '.join(missing)}: ${invocation.name} {missing[0]}=…")
    return values


def _convert(text: str, snippet: str, name: str, definition: Snippet) -> Any:
    """Return a given value as its parameter's type has it."""
    param = definition.params.get(name)
    if param is None or param.type in (None, "str"):
        return text
    try:
        return _TYPES[param.type](text.strip())
    except (ValueError, KeyError):
        raise SnippetError(f"${snippet} takes {name} as {_KINDS[param.type]}, not '{text[:80]}'") from None


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError(number)
    return number


def place_values(text: str, values: list[Any], marker: str, name: str, texts: Collection[str] = frozenset()) -> str:
    """Return the rendered code with each marker replaced by its value, so that no value can become code.

    Inside a string literal a value is escaped for it; elsewhere it is written as a Python literal, a number as one
    unless it is among *texts*.

    Raises:
        SnippetError: A value stands where it cannot be written safely.
    """
    found = re.compile(re.escape(marker) + r"(\d+)_")
    if not found.search(text):
        return text
    lines = text.split("\n")
    for token in reversed(_find_marked_tokens(text, marker, name)):
        if token.type == tokenize.NAME and not found.fullmatch(token.string):
            # Glued to a name, a quoted value could become an f-string and a negative number a subtraction.
            raise SnippetError(f"snippet '${name}' joins a value to a name: separate them, or write {{{{ … | code }}}}")
        write = partial(_literal, texts=texts) if token.type == tokenize.NAME else _escape_text
        _replace(lines, token, found.sub(lambda m, write=write: write(values[int(m[1])]), token.string))
    return "\n".join(lines)


def _find_marked_tokens(text: str, marker: str, name: str) -> list[tokenize.TokenInfo]:
    marked: list[tokenize.TokenInfo] = []
    openings: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.FSTRING_START:
                openings.append(token.string)
            elif token.type == tokenize.FSTRING_END:
                openings.pop()
            elif marker in token.string:
                literal = openings[-1] if token.type == tokenize.FSTRING_MIDDLE else token.string
                if re.match(r"[a-z]?r[a-z]?['\"]", literal, re.IGNORECASE):
                    raise SnippetError(f"snippet '${name}' puts a value into a raw string: use a plain one")
                marked.append(token)
    except (tokenize.TokenError, SyntaxError) as error:
        raise SnippetError(f"snippet '${name}' does not expand to Python: {error.args[0]}") from None
    return marked


def _replace(lines: list[str], token: tokenize.TokenInfo, written: str) -> None:
    (first, start), (last, end) = token.start, token.end
    joined = lines[first - 1][:start] + written + lines[last - 1][end:]
    lines[first - 1 : last] = joined.split("\n")


def _escape_text(value: Any) -> str:
    """Return the value's text for the inside of any string literal, f-strings and their format specs included."""
    return "".join(char if char.isprintable() and char not in "'\"\\{}" else _escape(ord(char)) for char in str(value))


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def _literal(value: Any, texts: Collection[str]) -> str:
    scalar = _scalar(value) if isinstance(value, str) and value not in texts else value
    return f"({scalar!r})" if isinstance(scalar, int | float) and scalar < 0 else repr(scalar)


def _scalar(text: str) -> Any:
    """Return the number, truth value or None that *text* reads as, or the text; never its source, with its comments."""
    try:
        scalar = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text
    is_number = isinstance(scalar, int) or (isinstance(scalar, float) and math.isfinite(scalar))
    return scalar if scalar is None or is_number else text


def expand_aliases(program: Program, aliases: Mapping[str, str]) -> Program:
    """Return *program* with every read of an alias written out; lines stay where they are."""
    used = (program.loads & aliases.keys()) - program.binds
    if not used:
        return program
    # An alias is a tool, and a tool has no attributes: `file.read` is the pack, whatever `file` is an alias of.
    packs = {id(node.value) for node in program.nodes if isinstance(node, ast.Attribute)}
    names = [node for node in program.nodes if isinstance(node, ast.Name) and node.id in used and id(node) not in packs]
    return program.edit((*program.span(node), aliases[node.id]) for node in names)
