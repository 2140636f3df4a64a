"""The user's patterns, and a tool's own word, decide what happens to a call of it."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ot.execution.caller import Caller
from ot.execution.policy import Action, PolicyVerdict, ToolPolicy, holds, is_narrower
from ot.registry.tool import Tool
from run_app import Calls, error_of, running_app, value_of

VAULT = "def read(): return 'read'\ndef wipe(): return 'wiped'\n"
LOCAL, PROXIED = "local", "proxy:github"


@pytest.mark.parametrize(
    ("patterns", "denied"),
    [
        ([], False),
        (["vault.wipe"], True),
        (["vault.*"], True),
        (["*.wipe"], True),
        (["*"], True),
        (["v?ult.[vw]ipe"], True),
        (["vault.read"], False),
        (["VAULT.WIPE"], False),
        (["vault"], False),
        (["other.*", "vault.w*"], True),
    ],
)
def test_a_pattern_matches_the_full_name(patterns: list[str], denied: bool) -> None:
    tool = Tool("vault", "wipe")
    assert (ToolPolicy(deny=patterns).verdict(tool).action == "deny") is denied
    assert (ToolPolicy(ask=patterns).verdict(tool).action == "ask") is denied


@pytest.mark.parametrize(
    ("patterns", "action", "pattern"),
    [
        # Of patterns that are equally narrow, or of which neither holds the other, the strictest.
        ({"allow": ["github.*"], "deny": ["*.delete_*"]}, "deny", "*.delete_*"),
        ({"allow": ["github.*"], "ask": ["*.delete_*"]}, "ask", "*.delete_*"),
        ({"allow": ["*.delete_*"], "deny": ["github.*"]}, "deny", "github.*"),
        ({"allow": ["github.*"], "ask": ["github.*"], "deny": ["github.*"]}, "deny", "github.*"),
        ({"allow": ["github.*"], "ask": ["github.*"]}, "ask", "github.*"),
        ({"allow": ["github.delete_repo"], "deny": ["github.delete_repo"]}, "deny", "github.delete_repo"),
        # A pattern inside another goes first.
        ({"allow": ["github.delete_repo"], "deny": ["github.*"]}, "allow", "github.delete_repo"),
        ({"allow": ["github.delete_repo"], "ask": ["*.delete_*"]}, "allow", "github.delete_repo"),
        ({"allow": ["github.*"], "deny": ["*"]}, "allow", "github.*"),
        ({"allow": ["github.delete_*"], "deny": ["github.*"], "ask": ["*"]}, "allow", "github.delete_*"),
        ({"ask": ["github.delete_repo"], "deny": ["github.*"], "allow": ["*"]}, "ask", "github.delete_repo"),
        # What is inside one is not inside all.
        ({"allow": ["github.*"], "deny": ["*", "*.delete_*"]}, "deny", "*.delete_*"),
        ({"allow": ["github.*"], "ask": ["*.delete_*"], "deny": ["*"]}, "ask", "*.delete_*"),
        # A wildcard that stands for one letter is narrower than one for any number.
        ({"allow": ["github.delete_rep?"], "deny": ["github.delete_*"]}, "allow", "github.delete_rep?"),
        ({"allow": ["github.delete_*"], "deny": ["github.delete_rep?"]}, "deny", "github.delete_rep?"),
    ],
)
def test_the_narrower_pattern_goes_first_and_then_the_stricter(
    patterns: dict[str, Any], action: Action, pattern: str
) -> None:
    for source in (LOCAL, PROXIED):
        verdict = ToolPolicy(**patterns).verdict(Tool("github", "delete_repo", source=source))
        assert verdict == PolicyVerdict(action, pattern)


@pytest.mark.parametrize(
    ("source", "read_only", "destructive", "action"),
    [
        (LOCAL, None, False, "allow"),
        (LOCAL, False, False, "allow"),
        (LOCAL, True, False, "allow"),
        (LOCAL, None, True, "ask"),
        (LOCAL, False, True, "ask"),
        (PROXIED, True, False, "allow"),
        (PROXIED, None, False, "ask"),
        (PROXIED, False, False, "ask"),
        (PROXIED, False, True, "ask"),
        (PROXIED, None, True, "ask"),
    ],
)
def test_a_tool_that_no_pattern_names_is_taken_at_its_word(
    source: str, read_only: bool | None, destructive: bool, action: str
) -> None:
    tool = Tool("p", "t", source=source, read_only=read_only, destructive=destructive)
    assert ToolPolicy(allow=["q.*"], deny=["p.other"]).verdict(tool) == PolicyVerdict(action)  # pyright: ignore[reportArgumentType] - one of the three


def test_a_pattern_goes_before_the_tools_word() -> None:
    reads, wipes = Tool("p", "reads", read_only=True), Tool("p", "wipes", destructive=True, source=PROXIED)
    assert ToolPolicy(ask=["p.*"]).verdict(reads).action == "ask"
    assert ToolPolicy(allow=["p.*"]).verdict(wipes).action == "allow"


@pytest.mark.anyio
async def test_a_denied_tool_is_denied_however_it_is_reached(tmp_path: Path) -> None:
    config = {"policy": {"deny": ["vault.wipe"]}, "aliases": {"clean": "vault.wipe"}}
    calls = Calls()
    async with running_app(tmp_path, {"vault": VAULT}, config, observers=[calls]) as app:
        assert value_of(await app.run("vault.read()")) == "read"
        for command in ("vault.wipe()", "clean()", "f = vault.wipe\nf()", "v = vault\nv.wipe()", "await vault.wipe()"):
            assert "PermissionError: vault.wipe is denied by the policy" in error_of(await app.run(command)), command
    assert [record.error for record in calls.records] == ["", *["ToolDenied"] * 5]


@pytest.mark.anyio
async def test_wrong_arguments_do_not_tell_more_of_a_denied_tool(tmp_path: Path) -> None:
    async with running_app(tmp_path, {"vault": VAULT}, {"policy": {"deny": ["vault.*"]}}) as app:
        assert "denied" in error_of(await app.run("vault.wipe(nothing=1)"))


@pytest.mark.anyio
@pytest.mark.parametrize("exact", [True, False])
async def test_a_destructive_tool_may_demand_whole_names_of_its_parameters(tmp_path: Path, exact: bool) -> None:
    pack = "__ot_destructive__ = ['wipe']\ndef wipe(path): return path\ndef look(path): return path\n"
    policy: dict[str, Any] = {"allow": ["vault.*"], "exact_names": exact}
    async with running_app(tmp_path, {"vault": pack}, {"policy": policy}) as app:
        assert value_of(await app.run("vault.look(p='a')")) == "a"
        assert value_of(await app.run("vault.wipe(path='a')")) == "a"
        reply = await app.run("vault.wipe(p='a')")
        assert reply.is_error is exact
        assert ("unexpected keyword argument 'p'" in reply.texts[-1]) is exact


@pytest.mark.anyio
async def test_health_tells_the_policy(tmp_path: Path) -> None:
    async with running_app(tmp_path, {}, {"policy": {"ask": ["*.delete_*"], "deny": ["vault.*"]}}) as app:
        policy = value_of(
            await app.run("__format__ = 'json'\nh = ot.health()['policy']\n[h['allow'], h['ask'], h['deny']]")
        )
        assert policy == '[[],["*.delete_*"],["vault.*"]]'
        assert "read-only tools run" not in policy


# ---------------------------------------------------------------- permissions that tools share

SEARCH = Tool("file", "search", read_only=True, needs=("file.read",))
EDIT = Tool("file", "edit", needs=("file.write",))
MOVE = Tool("file", "move", destructive=True, needs=("file.write",))
REWRITE = Tool("code", "rewrite", needs=("file.read", "file.write"))


@pytest.mark.parametrize(
    ("patterns", "tool", "action", "pattern", "need"),
    [
        ({"deny": ["file.write"]}, EDIT, "deny", "file.write", "file.write"),
        ({"ask": ["file.write"]}, EDIT, "ask", "file.write", "file.write"),
        ({"deny": ["*.read"]}, REWRITE, "deny", "*.read", "file.read"),
        ({"ask": ["file.read"], "deny": ["file.write"]}, REWRITE, "deny", "file.write", "file.write"),
        # One list: the narrower first.
        ({"deny": ["file.*"], "allow": ["file.search"]}, SEARCH, "allow", "file.search", ""),
        ({"allow": ["file.*"], "deny": ["file.write"]}, EDIT, "deny", "file.write", "file.write"),
        ({"allow": ["*"], "ask": ["file.read"]}, SEARCH, "ask", "file.read", "file.read"),
        ({"deny": ["file.*"]}, REWRITE, "deny", "file.*", "file.read"),
        # Then the stricter.
        ({"deny": ["file.read"], "allow": ["file.search"]}, SEARCH, "deny", "file.read", "file.read"),
        ({"ask": ["file.write"], "allow": ["file.edit"]}, EDIT, "ask", "file.write", "file.write"),
        ({"ask": ["file.write", "file.edit"]}, EDIT, "ask", "file.write", "file.write"),
        # What is allowed to another tool does not allow this one: a list of what is allowed stays as short as it is.
        ({"deny": ["*"], "allow": ["file.read"]}, SEARCH, "deny", "*", ""),
        ({"deny": ["file.*"], "allow": ["file.write"]}, EDIT, "deny", "file.*", ""),
        ({"allow": ["file.write"]}, MOVE, "ask", "", ""),
        ({"allow": ["file.write"]}, EDIT, "allow", "file.write", "file.write"),
    ],
)
def test_patterns_for_what_a_tool_needs_are_compared_with_its_own_and_only_make_it_stricter(
    patterns: dict[str, Any], tool: Tool, action: Action, pattern: str, need: str
) -> None:
    assert ToolPolicy(**patterns).verdict(tool) == PolicyVerdict(action, pattern, need=need)


def test_the_marks_of_what_a_tool_needs_do_not_count() -> None:
    assert ToolPolicy().verdict(Tool("mine", "tidy", needs=("file.delete",))) == PolicyVerdict("allow")


PATTERNS_OF_FILES = st.lists(st.sampled_from(["*", "file.*", "*.write", "file.write", "file.edit"]), max_size=2)


@settings(max_examples=50, deadline=None)
@given(PATTERNS_OF_FILES, PATTERNS_OF_FILES, PATTERNS_OF_FILES)
def test_a_need_never_makes_a_verdict_laxer(allow: list[str], ask: list[str], deny: list[str]) -> None:
    policy = ToolPolicy(allow=allow, ask=ask, deny=deny)
    order: tuple[Action, ...] = ("deny", "ask", "allow")
    alone, needing = policy.verdict(Tool("file", "edit")), policy.verdict(EDIT)
    assert order.index(needing.action) <= order.index(alone.action)


WRITES = {
    "file.append(path='b.txt', content='b')": "file.append",
    "file.save(path='b.txt', content='b')": "file.write",
    "file.edit(path='a.txt', old='a', new='b')": "file.edit",
    "file.patch(diff='--- /dev/null\\n+++ b/b.txt\\n@@ -0,0 +1 @@\\n+x\\n')": "file.patch",
    "file.copy(source='a.txt', target='b.txt', overwrite=True)": "file.copy",
    "file.move(source='a.txt', target='b.txt')": "file.move",
    "file.make_directory(path='b')": "file.make_directory",
    "open('b.txt', 'w')": "file.write",
    "import os\nos.mkdir('b')": "file.make_directory",
    "import os\nos.rename('a.txt', 'b.txt')": "file.move",
    "code.rewrite(pattern='a', replacement='b', language='python')": "code.rewrite",
    "ot.stats(output='b.txt')": "file.write",
}
READS = {
    "file.search(pattern='a')": "file.search",
    "rg.search(pattern='a')": "rg.search",
    "code.search(pattern='a', language='python')": "code.search",
    "data.query(sql='select 1')": "data.query",
    "documents.info(path='a.txt')": "documents.info",
}


@pytest.mark.anyio
@pytest.mark.parametrize(("denied", "commands"), [("file.write", WRITES), ("file.read", READS)])
async def test_who_denies_writing_or_reading_denies_every_bundled_tool_that_does_it(
    tmp_path: Path, denied: str, commands: dict[str, str]
) -> None:
    async with running_app(tmp_path, {}, {"policy": {"deny": [denied]}}) as app:
        (tmp_path / "work" / "a.txt").write_text("a")
        for command, tool in commands.items():
            said = error_of(await app.run(command))
            assert "PermissionError" in said, command
            assert f"{tool} is denied by the policy (policy.deny: '{denied}')" in said, command
    assert [file.name for file in (tmp_path / "work").iterdir()] == ["a.txt"]
    assert (tmp_path / "work" / "a.txt").read_text() == "a"


@pytest.mark.anyio
async def test_all_tools_of_the_packs_that_read_files_need_the_permission_to_read(tmp_path: Path) -> None:
    async with running_app(tmp_path, {}) as app:
        packs = app.picture.registry.packs
        tools = [tool for pack in ("rg", "code", "data", "documents") for tool in packs[pack].tools.values()]
    assert len(tools) > 15
    assert [tool.full_name for tool in tools if "file.read" not in tool.needs] == []


# ---------------------------------------------------------------- which pattern holds which

LETTERS = "ab.-![]"
NAMES = ["".join(letters) for size in range(4) for letters in product(LETTERS, repeat=size)]
patterns = st.lists(
    st.sampled_from(["*", "?", "a", "b", ".", "[", "]", "!", "-", "[ab]", "[!a]", "[a-b]", "[b-a]", "[]", "[!]"]),
    max_size=5,
).map("".join)


def matched(pattern: str) -> set[str]:
    return {name for name in NAMES if fnmatchcase(name, pattern)}


@settings(max_examples=150, deadline=None)
@given(patterns, patterns)
@example("a[b", "a[*")
@example("[!]", "[!]]")
@example("[]", "?")
def test_a_pattern_that_is_proved_narrower_matches_nothing_that_the_other_does_not(one: str, other: str) -> None:
    if is_narrower(one, other):
        assert matched(one) <= matched(other)
    elif matched(one) - matched(other):
        assert not holds(other, one)


@settings(max_examples=100, deadline=None)
@given(st.lists(patterns, max_size=3), st.lists(patterns, max_size=3), st.sampled_from(NAMES[1:]))
def test_a_deny_gives_way_only_to_what_is_proved_narrower(allow: list[str], deny: list[str], name: str) -> None:
    pack, dot, tool = name.partition(".")
    found = [pattern for pattern in [*allow, *deny] if fnmatchcase(name, pattern)]
    standing = [one for one in found if one in deny and not any(is_narrower(other, one) for other in found)]
    if standing and dot:
        assert ToolPolicy(allow=allow, deny=deny).verdict(Tool(pack, tool)).action == "deny"


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("github.[a-z]*", "github.*"),
        ("github.[ab]", "github.?"),
        ("github.[ab]", "github.[a-c]"),
        ("github.[!a]x", "github.?x"),
        ("github.a*b*c", "github.a*c"),
        ("github.?*", "github.*"),
        ("a*", "*"),
    ],
)
def test_brackets_and_wildcards_are_compared_by_what_they_match(narrow: str, wide: str) -> None:
    assert is_narrower(narrow, wide)
    assert not is_narrower(wide, narrow)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("github.[a-z_]*", "github.*_*"),
        ("github.[!x]*", "github.*_*"),
        ("github.[a-z]*", "github.[d_]*_*"),
        ("github.*", "github.**"),
        ("github.delete_rep?", "github.*[!a]o"),
        ("*[ab]" + "?" * 40, "*[bc]" + "?" * 40),
    ],
)
def test_what_merely_overlaps_or_takes_too_long_to_prove_is_denied(one: str, other: str) -> None:
    assert not is_narrower(one, other)
    assert not is_narrower(other, one)
    tool = Tool("github", "delete_repo")
    for allow, deny in ((one, other), (other, one)):
        if fnmatchcase(tool.full_name, deny):
            assert ToolPolicy(allow=[allow], deny=[deny]).verdict(tool) == PolicyVerdict("deny", deny)


# ---------------------------------------------------------------- groups

GROUPS: dict[str, dict[Action, list[str]]] = {
    "staff": {"allow": ["github.*"]},
    "interns": {"deny": ["*.delete_*"]},
    "leads": {"allow": ["github.delete_repo"]},
    "careful": {"ask": ["github.*"]},
}


@pytest.mark.parametrize(
    ("groups", "tool", "action", "rule"),
    [
        ((), "create_issue", "ask", "policy.ask"),
        (("staff",), "create_issue", "allow", "policy.groups.staff.allow"),
        (("staff", "careful"), "create_issue", "ask", "policy.groups.careful.ask"),
        (("staff", "interns"), "delete_repo", "deny", "policy.groups.interns.deny"),
        (("staff", "interns", "leads"), "delete_repo", "allow", "policy.groups.leads.allow"),
        (("unknown",), "create_issue", "ask", "policy.ask"),
        (("unknown", "staff"), "create_issue", "allow", "policy.groups.staff.allow"),
        (("leads",), "read_vault", "deny", "policy.deny"),
        (("staff", "leads", "careful"), "read_vault", "deny", "policy.deny"),
    ],
)
def test_a_member_meets_everyones_patterns_and_those_of_its_groups(
    groups: tuple[str, ...], tool: str, action: Action, rule: str
) -> None:
    policy = ToolPolicy(ask=["*"], deny=["github.read_vault"], groups=GROUPS)
    verdict = policy.verdict(Tool("github", tool), frozenset(groups))
    assert (verdict.action, verdict.rule) == (action, rule)


NAMED = st.sampled_from(["*", "github.*", "*.delete_*", "github.delete_repo", "vault.*"])
LISTS = st.fixed_dictionaries({}, optional={name: st.lists(NAMED, max_size=2) for name in ("allow", "ask", "deny")})


@given(LISTS, LISTS, LISTS)
def test_groups_are_as_if_their_patterns_stood_among_everyones(everyones: Any, one: Any, other: Any) -> None:
    """The same patterns decide, wherever they are written; those of groups that one is not in decide nothing."""
    tool = Tool("github", "delete_repo", source=PROXIED)
    both: Any = {name: [*everyones.get(name, []), *one.get(name, [])] for name in ("allow", "ask", "deny")}
    policy = ToolPolicy(**everyones, groups={"mine": one, "others": other})
    mine, alone = policy.verdict(tool, frozenset({"mine", "unknown"})), policy.verdict(tool)
    expected = ToolPolicy(**both).verdict(tool)
    assert (mine.action, mine.pattern) == (expected.action, expected.pattern)
    assert alone == ToolPolicy(**everyones).verdict(tool)


def test_patterns_are_compared_once_for_a_set_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counting(name: str, pattern: str) -> bool:
        compared.extend([pattern] if name == "github.get" else [])
        return fnmatchcase(name, pattern)

    monkeypatch.setattr("ot.execution.policy.fnmatchcase", counting)
    policy, tool = ToolPolicy(ask=["vault.*"], groups=GROUPS), Tool("github", "get")
    for stranger in range(50):
        policy.verdict(tool, frozenset({"staff", f"unknown{stranger}"}))
        policy.verdict(tool)
    assert sorted(compared) == ["github.*", "vault.*", "vault.*"]


@pytest.mark.anyio
async def test_a_call_meets_the_groups_of_whoever_asks(tmp_path: Path) -> None:
    config = {"policy": {"deny": ["vault.*"], "groups": {"keepers": {"allow": ["vault.read"], "deny": ["vault.wipe"]}}}}
    async with running_app(tmp_path, {"vault": VAULT}, config) as app:
        keeper = Caller("token|ann", groups=frozenset({"keepers"}))
        assert value_of(await app.run("vault.read()", caller=keeper)) == "read"
        assert "policy.deny: 'vault.*'" in error_of(await app.run("vault.read()", caller=Caller("token|bob")))
        said = error_of(await app.run("vault.wipe()", caller=keeper))
        assert "policy.groups.keepers.deny: 'vault.wipe'" in said
        shown = "ot.health()['policy'].get('groups')"
        assert json.loads(value_of(await app.run(shown, caller=keeper))) == {
            "keepers": {"allow": ["vault.read"], "ask": [], "deny": ["vault.wipe"]}
        }
        assert value_of(await app.run(f"{shown} is None", caller=Caller("token|bob"))) in ("True", "true")
