"""Redactor: takes the values of secrets out of whatever holds them; ``[secret:NAME]`` stands in their place.

A value is found as it is, and as servers write it: in base64 at any offset (so inside ``Basic user:secret`` too), in
hex, and with the escapes of URLs, JSON and HTML. Everything is searched for a few short texts first; only where one of
them is found does a pattern look for the whole.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, cast

MARK = "[secret:"
"""Begins what stands in the place of a secret."""
SHORTEST = 6
"""Shorter values are not redacted: they would be found in half of all words."""
SHORTEST_LINE = 16
LONGEST_TRACE = 16
"""A short text is quicker to look for in a short text."""
LONGEST_ESCAPED = 512
"""Longer values are not looked for with every single letter escaped, which nobody does to a key of many lines."""

Redact = Callable[[str], str]

_RUN = "[A-Za-z0-9]{2,}"
_NAMED = {
    "\t": "Tab",
    "\n": "NewLine",
    "!": "excl",
    '"': "QUOT|quot",
    "#": "num",
    "$": "dollar",
    "%": "percnt",
    "&": "AMP|amp",
    "'": "apos",
    "(": "lpar",
    ")": "rpar",
    "*": "ast|midast",
    "+": "plus",
    ",": "comma",
    ".": "period",
    "/": "sol",
    ":": "colon",
    ";": "semi",
    "<": "LT|lt",
    "=": "equals",
    ">": "GT|gt",
    "?": "quest",
    "@": "commat",
    "[": "lbrack|lsqb",
    "\\": "bsol",
    "]": "rbrack|rsqb",
    "^": "Hat",
    "_": "UnderBar|lowbar",
    "`": "DiacriticalGrave|grave",
    "{": "lbrace|lcub",
    "|": "VerticalLine|verbar|vert",
    "}": "rbrace|rcub",
}
"""The names that HTML has for punctuation."""
_CONTROL = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ALSO = {" ": "+"}
_URL_SAFE = {"+": "-", "/": "_"}
_SLASHES = r"\\{1,8}"
"""JSON inside JSON doubles its backslashes."""
_BASE64 = "[A-Za-z0-9+/_-]"
_ESCAPES = ("%", "\\u", "\\x", "&#", "&amp;#")
"""One of these stands in every text that has letters or digits escaped."""
_CODE = "(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
_NUMBER = "(?:4[89]|5[0-7]|6[5-9]|[78][0-9]|9[0789]|1[01][0-9]|12[0-2])"


@cache
def _compile_escapes() -> re.Pattern[str]:
    """Return the pattern of a letter or digit that is escaped although it need not be; compiling it takes a while."""
    # Each way begins with its own letter, which is what makes the search quick.
    entity = f"&(?:amp;){{0,3}}#(?:[xX]0{{0,6}}({_CODE})|0{{0,6}}({_NUMBER}));"
    return re.compile(rf"%({_CODE})|\\\\{{0,7}}(?:u00|x)({_CODE})|{entity}")


class Redactor:
    """Knows some secrets, and replaces their values."""

    def __init__(self, secrets: Mapping[str, str] | Iterable[tuple[str, str]] = ()) -> None:
        """Take out the values of *secrets*, which are by name."""
        pairs = cast("Mapping[str, str]", secrets).items() if isinstance(secrets, Mapping) else secrets
        known = [(part, name) for name, value in pairs for part in (value, *_lines_of(value))]
        names = {value: name for value, name in known if len(value) >= SHORTEST and not value.isspace()}
        self._know(_Secret(value, name) for value, name in names.items())

    @classmethod
    def join(cls, redactors: Iterable[Redactor]) -> Redactor:
        """Return one that knows what all of *redactors* know."""
        found = cls()
        found._know({secret.value: secret for one in redactors for secret in one._secrets}.values())
        return found

    def _know(self, secrets: Iterable[_Secret]) -> None:
        # The longest first: one secret may be the beginning of another.
        self._secrets = sorted(secrets, key=lambda secret: len(secret.value), reverse=True)
        self._ways = [way for secret in self._secrets for way in secret.traces]
        self._shortest = min((size for size, _, _ in self._ways), default=0)

    def __len__(self) -> int:
        return len(self._secrets)

    @property
    def idle(self) -> bool:
        """True when there is nothing to redact."""
        return not self._secrets

    def text(self, text: str) -> str:
        """Return *text* without the values."""
        found = self._suspects(text)
        if not found:
            return text
        # Marks that stand there already stay as they are: a secret may be a word of theirs.
        names = "|".join(sorted({re.escape(secret.name) for secret in self._secrets}))
        ways = [f"(?P<way{number}>{pattern})" for number, (_, pattern) in enumerate(found)]
        pattern = re.compile("|".join([rf"{re.escape(MARK)}(?:{names})\]", *ways]))

        def mark(match: re.Match[str]) -> str:
            return f"{MARK}{found[int(match.lastgroup[3:])][0]}]" if match.lastgroup else match[0]

        return pattern.sub(mark, text)

    def data(self, data: bytes) -> bytes:
        """Return *data* without the values."""
        if not self.finds(data):
            return data
        return self.text(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def finds(self, data: bytes) -> bool:
        """Return whether *data*, a text or JSON in UTF-8, may hold a value; where it does not, none is there."""
        # What is not ASCII is not in any of the traces, so one byte for a character is as good as UTF-8.
        return not self.idle and bool(self._suspects(data.decode("latin-1")))

    def _suspects(self, text: str) -> list[tuple[str, str]]:
        """Return the names of the secrets that *text* may hold, each with the pattern of the way it may be written."""
        length = len(text)
        if length < self._shortest or not self._ways:
            return []
        ways = [way for size, trace, way in self._ways if size <= length and trace in text]
        found = [(way.name, way.pattern) for way in ways if way.may_be_in(text)]
        if any(mark in text for mark in _ESCAPES) and _compile_escapes().search(text):
            bare = _compile_escapes().sub(_unescape, text)
            found += [(secret.name, secret.escaped) for secret in self._secrets if secret.ways[0].may_be_in(bare)]
        return found


def _lines_of(value: str) -> list[str]:
    """Return the lines that betray a key of many lines by themselves: logs are written line by line."""
    lines = value.splitlines() if "\n" in value else []
    return [line for line in lines if len(line) >= SHORTEST_LINE and not line.startswith("-----")]


class _Secret:
    """One value, and the ways in which it may be written."""

    def __init__(self, value: str, name: str) -> None:
        self.value = value
        self.name = name
        raw = value.encode(errors="surrogatepass")
        self.ways = [_Way(name, value, lambda: "".join(map(_letter_pattern, value)))]
        self.ways += [_Way(name, text, lambda text=text: text) for text in {raw.hex(): 1, raw.hex().upper(): 1}]
        self.ways += [_base64_way(name, raw, offset) for offset in range(3)]
        self.traces = [(way.size, way.trace, way) for way in self.ways]

    @cached_property
    def escaped(self) -> str:
        """The pattern of the value where letters are escaped that need not be."""
        return "".join(map(_escape_letter, self.value)) if len(self.value) <= LONGEST_ESCAPED else "(?!)"


class _Way:
    """A way in which a value may be written: what betrays it, and its pattern, which is made when it is needed."""

    def __init__(self, name: str, text: str, pattern: Callable[[], str]) -> None:
        self.name = name
        self.size = len(text)
        # Letters and digits side by side are what no encoding changes. Words are in many texts; what mixes letters and
        # digits hardly is.
        runs = sorted(re.findall(_RUN, text), key=lambda run: (len(run) > 4 and _is_mixed(run), len(run)), reverse=True)
        # A part of it will do, from its end: many secrets begin alike. Nothing at all is in every text.
        self.trace = runs[0][-LONGEST_TRACE:] if runs else ""
        self._others = runs[1:]
        self._pattern = pattern

    def may_be_in(self, text: str) -> bool:
        return self.trace in text and all(run in text for run in self._others)

    @cached_property
    def pattern(self) -> str:
        return self._pattern()


def _is_mixed(run: str) -> bool:
    return not run.isalpha() and not run.isdigit()


def _base64_way(name: str, raw: bytes, offset: int) -> _Way:
    """Return what base64 makes of *raw* with *offset* bytes before it, the letters at the ends that hold bits of it."""
    end = 8 * (offset + len(raw))
    core = b64encode(bytes(offset) + raw).decode("ascii")[(8 * offset + 5) // 6 : end // 6]
    before, after = f"{_BASE64}?" * (offset > 0), f"{_BASE64}?(?:=|%3[dD]){{0,2}}" * (end % 6 > 0)
    return _Way(name, core, lambda: before + "".join(_letter_pattern(letter, _URL_SAFE) for letter in core) + after)


def redact_value(value: Any, redact: Redact) -> Any:
    """Return plain data with *redact* done to every text in it, keys, bytes and numbers included."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return _entries(cast("Mapping[Any, Any]", value), redact)
    for kind in cast("tuple[type[list[Any]], ...]", (list, tuple, set, frozenset)):
        if isinstance(value, kind):
            return kind(redact_value(part, redact) for part in cast("list[Any]", value))
    if isinstance(value, bytes):
        return redact(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value)
        shown = redact(text)
        return value if shown == text else shown
    return value


def redact_block(block: Mapping[str, Any], redact: Redact) -> dict[str, Any]:
    """Return a content block as ``redact_value`` does; the encoded bytes of an image, a sound or a blob stay."""
    resource = block.get("resource")
    if block.get("type") in ("image", "audio"):
        return _entries(block, redact, spared="data")
    if block.get("type") != "resource" or not isinstance(resource, Mapping):
        return _entries(block, redact)
    inner = _entries(cast("Mapping[str, Any]", resource), redact, spared="blob")
    return _entries({**block, "resource": inner}, redact, spared="resource")


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """Return *name*, or with a number where it is *taken*: two keys must not become one silently."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found


def _entries(value: Mapping[Any, Any], redact: Redact, spared: str = "") -> dict[Any, Any]:
    """Return the entries in their order, for a block is known by its JSON; what stands under *spared* as it is."""
    found: dict[Any, Any] = {}
    for key, entry in value.items():
        name = redact_value(key, redact)
        kept = entry if spared and key == spared else redact_value(entry, redact)
        found[free_name(name, found) if isinstance(name, str) else name] = kept
    return found


# ---------------------------------------------------------------- how a value is written


def _letter_pattern(letter: str, also: Mapping[str, str] = _ALSO) -> str:
    """Return the pattern of the ways in which URLs, JSON and HTML write *letter*."""
    return letter if letter.isascii() and letter.isalnum() else _escape_letter(letter, also)


def _escape_letter(letter: str, also: Mapping[str, str] = _ALSO) -> str:
    """Return as ``_letter_pattern``, for encoders that escape letters and digits too."""
    plain = letter if letter.isalnum() else rf"\\{{0,8}}{re.escape(letter)}" if letter != "\\" else _SLASHES
    named = [f"&(?:amp;){{0,3}}(?:{_NAMED[letter]});"] if letter in _NAMED else []
    control = [f"{_SLASHES}{_CONTROL[letter]}"] if letter in _CONTROL else []
    others = [re.escape(also[letter])] if letter in also else []
    # What is longer goes first: an ampersand is also how an escape begins.
    ways = [_percent(letter), _unicode(letter), _hex(letter), _entity(letter), *named, *control, *others, plain]
    return f"(?:{'|'.join(ways)})"


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[4])) if found[4] else chr(int(found[1] or found[2] or found[3], 16))


def _percent(letter: str) -> str:
    return f"(?i:{''.join(f'%{byte:02x}' for byte in _utf8(letter))})"


def _unicode(letter: str) -> str:
    pairs = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"{_SLASHES}u(?i:{pairs[at : at + 4]})" for at in range(0, len(pairs), 4))


def _hex(letter: str) -> str:
    return "".join(f"{_SLASHES}x(?i:{byte:02x})" for byte in _utf8(letter))


def _entity(letter: str) -> str:
    return f"&(?:amp;){{0,3}}#(?i:0*{ord(letter)}|x0*{ord(letter):x});"


def _utf8(letter: str) -> bytes:
    return letter.encode(errors="surrogatepass")
