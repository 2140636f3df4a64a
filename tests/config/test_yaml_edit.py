"""Edits of a user's YAML file change what they should and leave every other character alone."""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ot.config.document import parse
from ot.config.yaml_edit import YamlText, block, flow
from ot.errors import ConfigError

FILE = Path("onetool.yaml")


def of(text: str) -> YamlText:
    return YamlText(text, FILE)


def comments(text: str) -> Counter[str]:
    """Return every comment of *text*: what is behind a '#' outside of values."""
    for token in reversed(list(yaml.scan(text, Loader=yaml.CSafeLoader))):
        if isinstance(token, yaml.ScalarToken):
            text = text[: token.start_mark.index] + "v" + text[token.end_mark.index :]
    return Counter(found.strip() for found in re.findall(r"(?:^|(?<=\s))#.*", text, re.MULTILINE))


# ---------------------------------------------------------------- single edits, as a user sees them

TIME = {"command": "uvx", "args": ["mcp-server-time"]}


def test_a_new_section_goes_to_the_end() -> None:
    edited = of("version: 1\n# mine\n").put(("servers", "time"), TIME)
    assert edited.text == ("version: 1\n# mine\n\nservers:\n  time:\n    command: uvx\n    args: [mcp-server-time]\n")


def test_a_new_server_goes_below_the_others_with_their_indent() -> None:
    text = "servers:\n    a: # first\n        command: x\n    # between\npolicy: {}\n"
    edited = of(text).put(("servers", "b"), {"command": "run"})
    assert edited.text == (
        "servers:\n    a: # first\n        command: x\n    b:\n      command: run\n    # between\npolicy: {}\n"
    )


@pytest.mark.parametrize("empty", ["servers:", "servers: {}", "servers: null", "servers: ~ ", "servers:  # none yet"])
def test_an_empty_section_is_opened(empty: str) -> None:
    edited = of(f"version: 1\n{empty}\n  # a hint\nlimits: {{calls: 3}}\n").put(("servers", "b"), {"command": "run"})
    assert edited.plain == {"version": 1, "servers": {"b": {"command": "run"}}, "limits": {"calls": 3}}
    assert "  b:\n    command: run\n" in edited.text
    assert comments(edited.text)["# a hint"] == 1


def test_removing_one_leaves_the_comments_around_it() -> None:
    head, tail = "servers:\n  # about a\n", "  # about b\n  b: {command: y}\n\n# What may run\npolicy: {}\n"
    text = f"{head}  a:\n    command: x # in a\n{tail}"
    edited = of(text).remove(("servers", "a"))
    assert edited.text == "servers:\n  # about a\n  # about b\n  b: {command: y}\n\n# What may run\npolicy: {}\n"
    last = edited.remove(("servers", "b"))
    assert last.text == "servers:\n  # about a\n  # about b\n\n# What may run\npolicy: {}\n"
    assert last.put(("servers", "c"), {"command": "z"}).plain["servers"] == {"c": {"command": "z"}}


def test_a_flag_is_changed_in_its_place() -> None:
    text = "servers:\n  a:\n    enabled: false # for now\n    command: x\n"
    assert of(text).put(("servers", "a", "enabled"), True).text == text.replace("false", "true")


def test_a_list_keeps_its_form() -> None:
    block_form = "policy:\n    allow:   # mine\n        - a.b   # why\n    # trailing\n# end\n"
    edited = of(block_form).add_item(("policy", "allow"), "c.*")
    assert edited.text == "policy:\n    allow:   # mine\n        - a.b   # why\n        - c.*\n    # trailing\n# end\n"
    emptied = edited.remove_item(("policy", "allow"), "a.b").remove_item(("policy", "allow"), "c.*")
    assert emptied.text == "policy:\n    allow: []   # mine\n    # trailing\n# end\n"
    assert of("policy: {allow: [a.b]} # x\n").add_item(("policy", "allow"), "*.c").text == (
        'policy: {allow: [a.b, "*.c"]} # x\n'
    )


def test_line_ends_of_windows_stay() -> None:
    edited = of("version: 1\r\nservers:\r\n  a:\r\n    command: x\r\n").put(("servers", "b"), {"command": "run"})
    assert edited.text == "version: 1\r\nservers:\r\n  a:\r\n    command: x\r\n  b:\r\n    command: run\r\n"


def test_a_file_without_a_last_line_end_gets_one() -> None:
    assert of("version: 1").put(("logs", "level"), "ERROR").text == "version: 1\n\nlogs:\n  level: ERROR\n"


def test_what_cannot_be_changed_without_harm_is_left_alone() -> None:
    text = "servers: {a: {command: x}, # mine\n  b: {command: y}}\n"
    with pytest.raises(ConfigError, match=r"was not changed.*do it by hand"):
        of(text).put(("servers", "c"), {"command": "z"})


# ---------------------------------------------------------------- any sequence of edits

NAMES = ["a", "b", "c-1"]
PATTERNS = ["a.*", "*.delete_*", "b.read", "c_1.x"]
LISTS = ["allow", "ask", "deny"]
HEADS = ["", "# top\n", "version: 1\n", "# top\nversion: 1 # v\n\n", "---\nversion: 1\n"]
SERVERS = [
    "",
    "#servers: {}\n",
    "servers:\n",
    "servers: {} # none\n",
    "servers:\n  # before a\n  a: # is a\n    command: x # of a\n    args:\n    - -y\n    # in a\n    - p\n"
    "  # after a\n",
    "servers: {a: {command: x, args: [-y, p]}, b: {url: 'http://h/'}}\n",
    "servers:\n    b:\n        command: |\n            x\n\n    # before a\n    a: {command: x}   # on a\n",
    'servers:\n  "a":\n    command: x\n    enabled: false\n\n\n  c-1:\n    url: http://h/ # of c\n',
]
POLICY = [
    "",
    "policy:\n  # none\n",
    "policy: {allow: [a.*], deny: []} # flow\n",
    "policy:\n  allow: # ours\n  - a.*   # all\n  # between\n  - b.read\n  # last\n  deny: []\n",
    "policy:\n  deny:\n      - 'a.*'\n      - \"*.delete_*\" # dangerous\n",
]
TAILS = [
    "",
    "\n# tail\n",
    "limits: {calls: 7} # few\n",
    "snippets:\n  s:\n    body: |+\n      # no comment\n      x\n\n",
]
documents = st.builds(
    lambda head, parts, tail: head + "".join(parts) + tail,
    st.sampled_from(HEADS),
    st.tuples(st.sampled_from(SERVERS), st.sampled_from(POLICY)).flatmap(st.permutations),
    st.sampled_from(TAILS),
).filter(str.strip)
texts = st.text(max_size=12) | st.sampled_from(
    ["${TOKEN}", "0o17", "1e3", "no", "a: b", "x #y", "- z", "{", "tab\there"]
)
entries = st.fixed_dictionaries(
    {"command": texts}, optional={"args": st.lists(texts, max_size=4), "env": st.dictionaries(texts, texts, max_size=2)}
)
edits = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(NAMES), entries),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("enable"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("pattern"), st.sampled_from(LISTS), st.sampled_from(PATTERNS)),
    st.tuples(st.just("no pattern"), st.sampled_from(LISTS), st.sampled_from(PATTERNS)),
)


def edited(text: YamlText, wanted: dict[str, Any], edit: tuple[str, str, Any]) -> tuple[YamlText, dict[str, Any]]:
    """Return the text after one edit, and what its values should be then."""
    kind, name, value = edit
    wanted = deepcopy(wanted)
    servers, policy = wanted.get("servers") or {}, wanted.get("policy") or {}
    items = list(policy.get(name) or [])
    if kind == "add" and name not in servers:
        return text.put(("servers", name), value), {**wanted, "servers": {**servers, name: value}}
    if kind == "remove" and name in servers:
        left = {key: entry for key, entry in servers.items() if key != name}
        return text.remove(("servers", name)), {**wanted, "servers": left}
    if kind == "enable" and name in servers:
        changed = {**servers, name: {**servers[name], "enabled": value}}
        return text.put(("servers", name, "enabled"), value), {**wanted, "servers": changed}
    if kind == "pattern" and value not in items:
        return text.add_item(("policy", name), value), {**wanted, "policy": {**policy, name: [*items, value]}}
    if kind == "no pattern" and value in items:
        items.remove(value)
        return text.remove_item(("policy", name), value), {**wanted, "policy": {**policy, name: items}}
    return text, wanted


def without_empty(plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if value not in ({}, None)}


@settings(max_examples=250, deadline=None)
@given(documents, st.lists(edits, max_size=8))
def test_no_sequence_of_edits_loses_a_comment_or_another_key(
    document: str, sequence: list[tuple[str, str, Any]]
) -> None:
    text = of(document)
    wanted = text.plain
    for edit in sequence:
        before = text
        text, wanted = edited(text, wanted, edit)
        assert without_empty(text.plain) == without_empty(wanted)
        assert parse(text.text.encode(), FILE).plain() == text.plain
        lost = comments(before.text) - comments(text.text)
        if edit[0] == "remove":
            # What stands inside of the removed entry goes with it, and nothing else.
            lost = Counter({note: count for note, count in lost.items() if not re.search(r"\b(is|of|in|on) ", note)})
        if edit[0] == "no pattern":
            lost = Counter({note: count for note, count in lost.items() if note not in ("# all", "# dangerous")})
        assert not lost, f"{edit}: {lost}\n{before.text}\n->\n{text.text}"


@given(
    st.recursive(
        texts | st.integers(-(10**20), 10**20) | st.booleans(),
        lambda below: st.lists(below) | st.dictionaries(texts, below),
    )
)
def test_what_is_written_is_what_is_read(value: Any) -> None:
    for lines in (["k: " + flow(value)], block("k", value)):
        text = "\n".join(lines)
        assert parse(text.encode(), FILE).plain() == {"k": value}, text


def test_the_properties_own_eye_sees_comments() -> None:
    assert sorted(comments("# a\nb: 'x # y' # c\nd: |\n  # e\nf: g#h\n")) == ["# a", "# c"]


# ---------------------------------------------------------------- keys


def test_a_renamed_key_keeps_its_value_its_place_and_its_comments() -> None:
    text = "# top\na: # why\n  b: 1 # one\n  # below\nc: [2]\n"
    assert of(text).rename(("a",), "new").text == text.replace("a: # why", "new: # why")
    assert of(text).rename(("a", "b"), "on").text == text.replace("b: 1", '"on": 1')
