"""Client files as people and programs leave them: every kind of gap, comment, newline and neighbour, by hypothesis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

NAMES = ("github", "my server", "a.b", "naïve", 'quo"te', "//", "onetools")
TEXTS = ("npx", "", "}", "]", "// no comment", "/* nor */", '"', "\\", "ü\u2028", "a, }", "[mcp_servers.onetool]", "#")
COMMENTS = ("// a note, } ]", '// "onetool": {', "//", "/* one */", '/* "x": { */', "/*\n two, \n*/", "/**/")
OTHER_KEYS = ("theme", "numStartups", "projects", "x", "mcpServer", "Servers")


def json_gaps(newline: str) -> st.SearchStrategy[str]:
    """Return blanks and comments, as they may stand between any two tokens."""
    # A comment to the end of its line needs one.
    notes = [comment + "\n" if comment.startswith("//") else comment for comment in COMMENTS]
    pieces = ["", " ", "\t", "\n", "\n    ", *notes]
    gaps = [one + other for one in pieces for other in pieces]
    return st.sampled_from([gap.replace("\n", newline) for gap in gaps])


@st.composite
def json_written(draw: st.DrawFn, value: Any, newline: str) -> str:
    """Return *value* as JSON with gaps between its tokens, and perhaps a final comma in each object and list."""
    gap = json_gaps(newline)
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    named = isinstance(value, dict)
    keys = [f"{draw(gap)}{json.dumps(key)}{draw(gap)}:" if named else "" for key in value]
    items = value.values() if named else value
    texts = [f"{draw(gap)}{draw(json_written(item, newline))}{draw(gap)}" for item in items]
    parts = [key + text for key, text in zip(keys, texts, strict=True)]
    final = "," + draw(gap) if parts and draw(st.booleans()) else ""
    inner = ",".join(parts) + final if parts else draw(gap)
    return f"{{{inner}}}" if named else f"[{inner}]"


def plain_values() -> st.SearchStrategy[Any]:
    """Return what settings hold."""
    leaves = st.one_of(st.sampled_from(TEXTS), st.integers(-5, 5), st.booleans(), st.none(), st.just(1.5))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(OTHER_KEYS), inner, max_size=2)
        ),
        max_leaves=4,
    )


def servers() -> st.SearchStrategy[dict[str, Any]]:
    """Return other servers by name."""
    entry = st.fixed_dictionaries(
        {"command": st.sampled_from(TEXTS)},
        optional={"args": st.lists(st.sampled_from(TEXTS), max_size=2), "env": st.just({"A": "b"}), "odd": st.none()},
    )
    return st.dictionaries(st.sampled_from(NAMES), entry, max_size=3)


@st.composite
def json_files(draw: st.DrawFn, key: str) -> str:
    """Return a client's file in JSON, whose servers are under *key* if it has any."""
    newline = draw(st.sampled_from(("\n", "\r\n")))
    content = draw(st.dictionaries(st.sampled_from(OTHER_KEYS), plain_values(), max_size=3))
    if draw(st.booleans()):
        items = [*content.items(), (key, draw(servers()))]
        content = dict(draw(st.permutations(items)))
    start, end = draw(st.sampled_from(("", "\ufeff"))), draw(json_gaps(newline))
    if draw(st.booleans()):
        indent = draw(st.sampled_from((None, 1, 2, 4, "\t")))
        pretty = json.dumps(content, indent=indent).replace("\n", newline)
        return start + pretty + end
    if not content and draw(st.booleans()):
        return start + end
    return start + draw(json_gaps(newline)) + draw(json_written(content, newline)) + end


# ---------------------------------------------------------------- TOML

TOML_TOP = (
    'model = "o9"',
    "x = 1 # why",
    'text = """\n[mcp_servers.onetool]\ncommand = 1\n"""',
    "list = [\n  1, # one ]\n  2,\n]",
    "  spaced  =  'a # b'",
    '"quoted key" = { a = "}", b = [1, 2] }',
    "day = 2026-11-16",
    "# [mcp_servers.onetool]",
    "",
)
TOML_TABLES = (
    '[mcp_servers.docs]\ncommand = "docs"\nargs = ["a", "]"]',
    '[mcp_servers."my server"]\nurl = "https://x"',
    "[mcp_servers.docs2.env]\nA = '''\n[x]\n'''",
    "[[profiles]]\nname = 1\n[[profiles]]\nname = 2",
    "[ tools . web ]\non=true",
    "[projects.'/home/me']\ntrust_level = \"trusted\" # mine",
    "[mcp_servers.onetools]\nenabled = false",
    "# about nothing",
    "",
)


@st.composite
def toml_files(draw: st.DrawFn, _key: str) -> str:
    """Return a client's file in TOML."""
    newline = draw(st.sampled_from(("\n", "\r\n")))

    def some(parts: Sequence[str]) -> list[str]:
        return draw(st.lists(st.sampled_from(parts), unique=True, max_size=5))

    text = "\n".join([*some(TOML_TOP), *some(TOML_TABLES)])
    end = draw(st.sampled_from(("", "\n", "\n\n", "\n# the end")))
    return draw(st.sampled_from(("", "\ufeff"))) + (text + end).replace("\n", newline)
