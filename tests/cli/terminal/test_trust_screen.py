"""What onetool trust shows: everything that would run, whole, and on trusting again what has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command import OneTool
from config.desk import write

PACK = '# /// script\n# dependencies = ["httpx>=0.28", "evil"]\n# ///\ndef f(): ...\n'


def project(onetool: OneTool, text: str, **files: str) -> None:
    write(onetool.project / "onetool.yaml", text)
    for name, content in files.items():
        write(onetool.project / name.replace("__", "/"), content)


def screen(onetool: OneTool) -> str:
    ended = onetool("trust", "--yes")
    assert ended.code == 0, ended.err
    return ended.out


def test_a_server_is_shown_with_all_that_it_is_given(onetool: OneTool) -> None:
    project(
        onetool,
        "servers:\n"
        "  a: {command: npx, args: [-y, '@scope/x'], env: {NODE_OPTIONS: --require ./e.js}, cwd: sub, tools: ['!b']}\n"
        "  b: {url: 'https://h/', headers: {X-Key: '${K}', X-Long: 'LONG'}}\n".replace("LONG", "x" * 20_000),
    )
    shown = screen(onetool)
    for line in (
        "    runs: npx -y @scope/x",
        "    installs: @scope/x",
        "    env.NODE_OPTIONS: --require ./e.js",
        "    cwd: sub",
        "    tools.0: !b",
        "    url: https://h/",
        "    headers.X-Key: ${K}",
        f"    headers.X-Long: {'x' * 20_000}",
    ):
        assert line in shown.splitlines()


def test_a_snippet_cannot_hide_its_end(onetool: OneTool) -> None:
    body = "1" + " " * 95 + "\\nfile.write(path='x', content='y')"
    blank = "\\u3164" * 50
    project(onetool, f'snippets: {{hi: {{body: "{body}", description: "a{blank}b; body: harmless"}}}}\n')
    lines = screen(onetool).splitlines()
    assert r"    body: 1[96 blanks, 1 line ends]file.write(path='x', content='y')" in lines
    assert "    description: a[50 blanks]b; body: harmless" in lines


def test_what_would_be_installed_is_shown(onetool: OneTool) -> None:
    project(
        onetool,
        "servers:\n"
        "  u: {command: uvx, args: [--from, 'git+https://evil/x', --with=more, run-it]}\n"
        "  d: {command: docker, args: [run, -i, --rm, evil/image]}\n"
        "  n: {command: /usr/bin/npx, args: [--package=a, -p, b, c]}\n",
        tools__mine__mine_tools_py=PACK,
    )
    (onetool.project / "tools/mine/mine_tools_py").rename(onetool.project / "tools/mine/mine_tools.py")
    told = json.loads(onetool("trust", "--yes", "--json").out)
    assert told["packs"]["mine"]["installs"] == ["httpx>=0.28", "evil"]
    installs = {name: server["installs"] for name, server in told["servers"].items()}
    assert installs == {"u": ["git+https://evil/x", "more"], "d": ["evil/image"], "n": ["a", "b"]}


def test_what_stands_in_for_something_says_so(onetool: OneTool) -> None:
    write(
        onetool.user / "onetool.yaml",
        "servers: {hub: {command: sh}}\naliases: {f: file.read}\nsnippets: {hi: {body: '1'}}\n",
    )
    write(onetool.user / "tools" / "mine" / "mine_tools.py", "def f(): ...\n")
    project(
        onetool,
        "servers: {hub: {command: bash}}\naliases: {f: file.write}\nsnippets: {hi: {body: '2'}}\n"
        "tools: {file: {max_bytes: 10}}\n",
    )
    for name in ("mine", "file"):
        write(onetool.project / "tools" / name / f"{name}_tools.py", "def f(): ...\n")
    lines = screen(onetool).splitlines()
    for words in (
        "    replaces: the bundled pack 'file'",
        "    replaces: your pack 'mine'",
        "    replaces: your server 'hub', and what your policy allows it",
        "    replaces: your snippet 'hi'",
        "  your alias 'f', which is file.read",
    ):
        assert words in lines
    health = json.loads(onetool("run", "--json", "ot.health()['warnings']").out)["content"]
    assert "the project's pack 'file' replaces the bundled pack 'file'" in health[0]
    assert "the project's server 'hub' replaces yours of that name" in health[-1]


def test_secrets_are_named_and_never_shown(onetool: OneTool) -> None:
    project(onetool, "version: 1\n")
    write(onetool.project / "secrets.yaml", "TOKEN: very-private\n")
    first = onetool("trust", "--yes")
    assert "  secrets.yaml  values are not shown: TOKEN" in first.out.splitlines()
    write(onetool.project / "secrets.yaml", "TOKEN: other-private\nMORE: third-private\n")
    again = onetool("trust", "--yes")
    assert "  secrets.yaml was changed" in again.out.splitlines()
    kept = "".join(file.read_text() for file in (onetool.user / "seen").iterdir())
    assert "private" not in first.out + again.out + kept


def test_it_says_what_a_trusted_program_can_do(onetool: OneTool) -> None:
    project(onetool, "servers: {a: {command: sh}}\n")
    shown = screen(onetool)
    assert "run as you, outside the sandbox" in shown
    assert "~/.onetool/secrets.yaml" in shown
    assert "~/.onetool/trust.json" in shown


# ---------------------------------------------------------------- again


@pytest.fixture
def trusted(onetool: OneTool) -> OneTool:
    """A project that was trusted, with a pack, a snippet and settings."""
    project(onetool, "limits: {calls: 5}\nservers:\n  a: {command: sh}\n")
    write(onetool.project / "tools" / "mine" / "mine_tools.py", "def f():\n    return 1\n")
    write(onetool.project / "notes.txt", "a\n")
    screen(onetool)
    return onetool


def test_on_trusting_again_the_difference_is_shown_and_not_everything(trusted: OneTool) -> None:
    write(
        trusted.project / "onetool.yaml",
        "limits: {calls: 5}\nservers:\n  a: {command: sh, env: {LD_PRELOAD: ./x.so}}\n",
    )
    write(trusted.project / "tools" / "mine" / "mine_tools.py", "def f():\n    return 2\x1b[2J\n")
    write(trusted.project / "tools" / "more" / "more_tools.py", "def g(): ...\n")
    (trusted.project / "notes.txt").unlink()
    lines = screen(trusted).splitlines()
    for line in (
        "  notes.txt was removed",
        "  onetool.yaml was changed",
        "  tools/mine/mine_tools.py was changed",
        "  tools/more/more_tools.py was added",
        "  +    env.LD_PRELOAD: ./x.so",
        "  +  more  tools/more/more_tools.py",
        "  -    return 1",
        r"  +    return 2\x1b[2J",
        "  +def g(): ...",
    ):
        assert line in lines
    assert not [line for line in lines if "limits.calls" in line or "sha256" in line]


def test_a_project_that_is_trusted_again_unchanged_is_said_to_be(trusted: OneTool) -> None:
    shown = screen(trusted)
    assert ", and unchanged since\nwhat would run\n  as before\n" in shown


def test_the_difference_is_in_the_json_too_and_asking_blind_is_not(trusted: OneTool) -> None:
    write(trusted.project / "onetool.yaml", "servers:\n  a: {command: bash}\n")
    ended = trusted("trust", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["trusted"]) == (4, None)
    assert told["servers"] == {"a": {"runs": "bash"}}
    assert told["since"]["changes"] == ["onetool.yaml was changed"]
    assert {"-    runs: sh", "+    runs: bash"} <= set(told["since"]["diff"])
    assert "+    runs: bash" in ended.err


def test_where_the_old_texts_are_unknown_everything_is_shown(trusted: OneTool) -> None:
    (file,) = (trusted.user / "seen").iterdir()
    for content in (None, "{", json.dumps({"directory": "x", "files": {"onetool.yaml": "version: 1\n"}})):
        file.unlink() if content is None else write(file, content)
        write(trusted.project / "onetool.yaml", "limits: {calls: 4}\n")
        assert "limits.calls  4" in trusted("trust").out


def test_what_is_kept_to_compare_with_is_private_bounded_and_goes_with_the_trust(trusted: OneTool) -> None:
    (file,) = (trusted.user / "seen").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    write(trusted.project / "big.txt", "x" * 100_000)
    write(trusted.project / "odd.bin", "x")
    (trusted.project / "odd.bin").write_bytes(b"\xff\x00")
    screen(trusted)
    assert set(json.loads(file.read_text())["files"]) == {"onetool.yaml", "notes.txt", "tools/mine/mine_tools.py"}
    write(trusted.project / "big.txt", "y")
    assert "its text is not kept, or too large: look at the file" in screen(trusted)
    trusted("untrust")
    assert list((trusted.user / "seen").iterdir()) == []


def test_an_edit_by_command_is_what_the_next_difference_starts_from(trusted: OneTool) -> None:
    assert trusted("disable", "a").code == 0
    write(trusted.project / "notes.txt", "b\n")
    shown = screen(trusted)
    assert "what would run\n  as before\n" in shown
    assert Path(trusted.project / "notes.txt").exists()
