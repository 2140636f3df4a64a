"""JavaScript given as a program: how it is told from Python, and the same lines in Python as far as they are simple."""

from __future__ import annotations

import ast
import re
from typing import Final

MOST_CHARACTERS: Final = 10_000
SIGNS: Final = re.compile(
    r"(?m)^[ \t]{0,80}(?:(?:const|let|var)[ \t][^=\n]{1,200}="
    r"|(?:async[ \t])?function\b|(?:for|if|while)[ \t]?\(.{0,200}\) \{)"
    r"|===|=>|\bconsole\.log\("
)
ADVICE: Final = (
    "this is JavaScript, and run() takes Python: x = 1 without const, pack.tool(key=value), for x in xs:, "
    "print(x), True, False, None, and, or, not"
)
# One that does not end is a text to the end of its line, so that no part is looked at twice.
TEXT: Final = re.compile(r"""("(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|`[^`]*+`?)""")
LINES: Final = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"for ?\((?:const|let|var) (\w{1,100}) of (.{1,500})\)", r"for \1 in \2:"),
        (r"else if ?\((.{1,500})\)", r"elif \1:"),
        (r"(if|while) ?\((.{1,500})\)", r"\1 \2:"),
        (r"(async )?function (\w{1,100} ?\([^()]{0,500}\))", r"\1def \2:"),
        (r"else", "else:"),
        (r"(?:const|let|var) (\w{1,100} ?=.{1,2000})", r"\1"),
        (r"(\w{1,100})\+\+", r"\1 += 1"),
        (r"//(.{0,2000})", r"#\1"),
    )
)
"""Whole lines, without the brace that they open."""
WORDS: Final = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"===", "=="),
        (r"!==", "!="),
        (r"&&", "and"),
        (r"\|\|", "or"),
        (r"!(?=[\w(])", "not "),
        (r"\b(?:null|undefined)\b", "None"),
        (r"\btrue\b", "True"),
        (r"\bfalse\b", "False"),
        (r"\bconsole\.log\(", "print("),
        (r"\b(\w{1,100})\.length\b", r"len(\1)"),
    )
)
PROPERTY: Final = re.compile(r"\b(\w{1,100})\.(\w{1,100})\b(?! ?\()")
DECLARED: Final = re.compile(r"\b(?:const|let|var)[ \t](\w{1,100})\b")


def javascript_advice(code: str) -> str:
    """Return what to write instead if *code*, which Python refuses, is JavaScript; else nothing."""
    if len(code) > MOST_CHARACTERS or not SIGNS.search(code):
        return ""
    python = in_python(code)
    return f"this is JavaScript, and run() takes Python. In Python:\n{python}" if python else ADVICE


def in_python(code: str) -> str:
    """Return *code* line by line in Python; nothing if it holds more than simple statements."""
    declared = frozenset(DECLARED.findall(code))
    lines: list[str] = []
    depth = 0
    for line in code.split("\n"):
        text = line.strip().rstrip(";").rstrip()
        depth -= text.startswith("}")
        opens = text.endswith("{")
        text = text.removeprefix("}").removesuffix("{").strip()
        if text:
            lines.append("    " * depth + _statement(text, declared))
        depth += opens
    python = "\n".join(lines)
    try:
        ast.parse(python)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return python


def _statement(text: str, declared: frozenset[str]) -> str:
    for pattern, meaning in LINES:
        if found := pattern.fullmatch(text):
            text = found.expand(meaning)
            break
    parts = TEXT.split(text)
    # Every other part is the text of a string.
    changed = [_string(part) if number % 2 else _words(part, declared) for number, part in enumerate(parts)]
    return _arguments("".join(changed))


def _string(text: str) -> str:
    return f'f"{text.strip("`")}"'.replace("${", "{") if text.startswith("`") else text


def _words(text: str, declared: frozenset[str]) -> str:
    for pattern, meaning in WORDS:
        text = pattern.sub(meaning, text)
    return PROPERTY.sub(lambda found: f'{found[1]}["{found[2]}"]' if found[1] in declared else found[0], text)


def _arguments(text: str) -> str:
    """Return *text* with an object as the only argument made arguments, and any other made a dict."""
    text = re.sub(r"\(\{ ?([^{}]{0,1000}?) ?\}\)", lambda found: f"({_pairs(found[1], '{}={}')})", text)
    return re.sub(r"\{ ?(\w{1,100} ?:[^{}]{0,1000}?) ?\}", lambda found: "{" + _pairs(found[1], '"{}": {}') + "}", text)


def _pairs(text: str, form: str) -> str:
    return re.sub(r"\b(\w{1,100}) ?: ?([^,]{1,1000})", lambda found: form.format(found[1], found[2]), text)
