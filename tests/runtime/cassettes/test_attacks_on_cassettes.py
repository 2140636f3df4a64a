"""What somebody could put into a cassette: it is refused with file and line, or is data and nothing else."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ConfigError
from ot.runtime.cassettes.cassette import read_cassette
from ot.runtime.cassettes.recording import Recording
from ot.runtime.cassettes.replay import Replay
from run_app import Calls, running_app
from runtime.cassettes.taped import PACKS, is_there, record, replay

pytestmark = pytest.mark.anyio

HEAD = "cassette: 1\nengine: exact\nclock: '2026-11-19T10:00:00+00:00'\nseed: 1\npacks: [web]\n"
CALL = HEAD + "calls:\n- call: web.fetch\n  kwargs: {url: x}\n"
END = "result: {}\n"

REFUSED: dict[str, tuple[str | bytes, int, str]] = {
    "nothing": ("", 1, "the file is empty"),
    "a list": ("- 1\n", 1, "must contain keys and values"),
    "another version": (HEAD.replace("cassette: 1", "cassette: 2"), 1, "cassette: Input should be 1"),
    "no version": ("engine: exact\n", 1, "cassette: Field required"),
    "an object of Python": (
        CALL + "  returns: !!python/object/apply:os.system [touch x]\n", 9, "the tag .* is not used here"
    ),
    "a tag of YAML": (CALL + "  returns: !!binary aGk=\n", 9, "the tag .* is not used here"),
    "aliases that grow": (CALL + "  returns: [&a [x, x], *a, *a]\n", 9, "anchors and aliases"),
    "two documents": (CALL + "---\nx: 1\n", 9, "a second document"),
    "a directive": ("%YAML 1.2\n---\n" + HEAD, 1, "directives"),
    "control characters": (CALL + "  returns: 'a\x1b[2Jb'\n", 9, "control character"),
    "no text": (b"cassette: 1\n\xff\n", 2, "not UTF-8"),
    "too much of it": (b"x" * ((16 << 20) + 1), 1, "larger than 16,777,216 bytes"),
    "too many values": (CALL + "  returns: [" + "1," * 400_001 + "]\n", 9, "more than 400,000 values"),
    "too deep": (CALL + "  returns: " + "[" * 100 + "]" * 100 + "\n", 9, "nested more than 80 deep"),
    "a huge number as seed": (HEAD.replace("seed: 1", "seed: " + "9" * 29), 4, "seed: "),
    "a huge number as time": (CALL + "  at: 1e999\n", 9, "calls.0.at: "),
    "no number as time": (CALL + "  at: .nan\n", 9, "calls.0.at: "),
    "a task below nothing": (CALL + "  task: -1\n", 9, "calls.0.task: Input should be greater"),
    "a clock out of range": (HEAD.replace("2026", "9999"), 3, "clock: "),
    "a clock without a zone": (HEAD.replace("+00:00", ""), 3, "clock: "),
    "a pack called as a builtin": (HEAD.replace("[web]", "[len]"), 5, "'len' cannot be a pack's name"),
    "a pack called as a word of Python": (HEAD.replace("[web]", "[class]"), 5, "cannot be a pack's name"),
    "a pack that is none": (HEAD.replace("[web]", "[__builtins__]"), 5, "cannot be a pack's name"),
    "a call of a path": (CALL.replace("web.fetch", "../../x"), 7, "'' cannot be a pack's name"),
    "a call of a builtin": (CALL.replace("web.fetch", "print.x"), 7, "cannot be a pack's name"),
    "a member of no pack": (HEAD + "members: {'../x': /etc}\n", 6, "'' cannot be a pack's name"),
    "policy": (HEAD + "policy: {allow: ['*']}\n", 6, "policy: Extra inputs are not permitted"),
    "code beside a call": (CALL + "  run: import os\n", 9, "calls.0.run: Extra inputs"),
    "a key twice": (CALL + "  kwargs: {url: y}\n", 9, "'kwargs' is given twice"),
    "arguments that are text": (CALL.replace("{url: x}", "x"), 8, "calls.0.kwargs: "),
    "calls that are none": (HEAD + "calls: {a: b}\n", 6, "calls: "),
    "an unknown kind of value": (CALL + "  returns: {$ot: pickle, v: gASV}\n", 9, "a value is malformed"),
    "bytes that are none": (CALL + "  returns: {$ot: bytes, v: '*'}\n", 9, "a value is malformed"),
    "a block of no kind": (
        CALL + "  told: [{content: {block: {type: script, text: x}}}]\n", 9, "a tool tells one of print"
    ),
    "a block with a wrong inside": (
        CALL + "  told: [{content: {block: {type: resource, resource: [1]}}}]\n", 9, "a tool tells"
    ),
    "told to whom": (CALL + "  told: [{progress: {done: 1}}]\n", 9, "a tool tells one of"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), REFUSED.values(), ids=REFUSED)
def test_a_malformed_cassette_is_refused_with_file_and_line(
    text: str | bytes, line: int, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "x.cassette.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=why) as refused:
        read_cassette(file)
    assert (refused.value.file, refused.value.line) == (file, line)


def test_a_pipe_is_no_cassette(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.yaml")
    with pytest.raises(OSError, match="not a regular file"):
        read_cassette(tmp_path / "x.yaml")


async def _replayed(tmp_path: Path, calls: str, command: str, config: Any = None) -> Any:
    file = tmp_path / "x.cassette.yaml"
    file.write_text(HEAD.replace("[web]", "[web, file, evil]") + f"calls:\n{calls}" + END)
    reply, _ = await replay(tmp_path / "here", command, file, config)
    return reply


async def test_a_cassette_says_nothing_to_any_other_run(tmp_path: Path) -> None:
    file = tmp_path / "x.cassette.yaml"
    file.write_text(
        HEAD.replace("[web]", "[file, evil]")
        + "calls:\n- call: file.read\n  kwargs: {path: a}\n  returns: false words\n"
    )
    async with running_app(tmp_path) as app:
        (app.paths.cwd / "a").write_text("true words")
        names = app.tool_names()
        tape = Replay(read_cassette(file), str)
        assert (await app.run("file.read(path='a')", tape=tape)).texts == ("false words",)
        assert (await app.run("file.read(path='a')")).texts == ("true words",)
        assert app.tool_names() == names
        assert "evil" in (await app.run("evil.x()")).text  # a NameError: it is no pack
        assert (await app.run("evil.x()")).is_error


async def test_what_is_not_in_the_cassette_is_not_called_whatever_the_policy(tmp_path: Path) -> None:
    calls = "- call: file.read\n  kwargs: {path: a}\n  returns: x\n"
    for command in (
        "file.write(path='new', content='x')",
        "try:\n    file.write(path='new', content='x')\nexcept BaseException:\n    pass\n1",
        "open('new', 'w').write('x')",
        "ot.reload()",
        'ot.background(command=\'file.write(path="new", content="x")\')',
    ):
        reply = await _replayed(tmp_path, calls, command, {"policy": {"allow": ["*"]}})
        assert reply.is_error, command
        assert reply.error == "NotRecorded"
        assert "not in the cassette" in reply.text


async def test_an_answer_to_a_denied_tool_is_data_and_nothing_more(tmp_path: Path) -> None:
    calls = "- call: file.write\n  kwargs: {path: new, content: x}\n  returns: {path: new}\n"
    command = "file.write(path='new', content='x')"
    reply = await _replayed(tmp_path, calls, command, {"policy": {"deny": ["file.*"]}})
    assert (reply.value, reply.is_error) == ({"path": "new"}, False)  # and replay() has seen that no file is there


async def test_text_that_looks_like_code_stays_text(tmp_path: Path) -> None:
    text = "__import__('os').system('touch ran')"
    calls = f'- call: web.fetch\n  kwargs: {{url: x}}\n  returns: "{text}"\n'
    assert (await _replayed(tmp_path, calls, "web.fetch(url='x')")).value == text
    assert not is_there(tmp_path / "here" / "work" / "ran")


@pytest.mark.parametrize("kind", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "exec", "__import__"])
async def test_only_an_exception_is_raised(kind: str, tmp_path: Path) -> None:
    calls = f"- call: web.fetch\n  kwargs: {{url: x}}\n  raises: {kind}\n  message: out\n"
    command = "try:\n    web.fetch(url='x')\nexcept RuntimeError as error:\n    said = str(error)\nsaid"
    assert (await _replayed(tmp_path, calls, command)).value == f"{kind}: out"


async def test_an_operator_who_marks_what_is_untrusted_sees_it_marked(tmp_path: Path) -> None:
    calls = "- call: file.read\n  kwargs: {path: a}\n  returns: __run now\n"
    reply = await _replayed(tmp_path, calls, "file.read(path='a')", {"security": {"sanitize": "untrusted"}})
    assert reply.text.startswith("<external-content-")


SECRET = "tok-3c9f17be20a44d5e"
LEAK = '''
    def tell(*, text: str = "") -> dict:
        """Return the secret in several forms."""
        print(f"printed {SECRET}")
        return {"plain": SECRET, SECRET: 1, "bytes": SECRET.encode(), "list": [(SECRET,)], "in": f"a{SECRET}b"}


    def fail() -> None:
        """Raise it."""
        raise ValueError(f"the token {SECRET} is wrong")


    SECRET = "tok-" + "3c9f17be20a44d5e"
'''
LEAKING = f"""
found = leak.tell(text="{SECRET}")
open("kept.txt", "w").write("{SECRET}")
try:
    leak.fail()
except ValueError as error:
    said = str(error)
print(said)
[found, file.read(path="kept.txt"), said, "{SECRET}"]
"""


async def test_no_secret_is_in_the_file_in_any_form(tmp_path: Path) -> None:
    config = {"policy": {"allow": ["*"]}}
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "secrets.yaml").write_text(f"TOKEN: {SECRET}\n")
    (tmp_path / "user" / "secrets.yaml").chmod(0o600)
    file = tmp_path / "x.cassette.yaml"
    async with running_app(tmp_path, {"leak": LEAK}, config) as app:
        recording = Recording(app.picture.loaded.secrets.redact, file)
        recorded = await app.run(LEAKING, tape=recording)
        assert (recorded.is_error, recording.finish()) == (False, []), recorded.text
    text = file.read_text()
    assert "[secret:TOKEN]" in text
    assert SECRET not in text
    for start in range(3):
        assert base64.b64encode(SECRET.encode()[start:])[:-4].decode() not in text
    reply, tape = await replay(tmp_path / "here", LEAKING.replace(SECRET, "[secret:TOKEN]"), file)
    assert (reply.is_error, tape.finish()) == (False, []), reply.text


async def test_a_link_in_the_file_s_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / "x.yaml").symlink_to(target)
    await record(tmp_path / "there", "file.read(path='a.txt')", tmp_path / "x.yaml")
    assert target.read_text() == "kept"
    assert not (tmp_path / "x.yaml").is_symlink()


async def test_a_replayed_run_is_held_to_its_limits(tmp_path: Path) -> None:
    calls = "- call: web.fetch\n  kwargs: {url: x}\n  returns: y\n" * 5
    reply = await _replayed(tmp_path, calls, "[web.fetch(url='x') for i in range(5)]", {"limits": {"calls": 3}})
    assert reply.error == "LimitExceeded"


async def test_names_of_tools_that_are_installed_do_not_start_them(tmp_path: Path) -> None:
    door = Calls()
    config = {"servers": {"web": {"command": "/nonexistent/server"}}, "policy": {"allow": ["*"]}}
    file = tmp_path / "x.cassette.yaml"
    file.write_text(CALL + "  returns: answered\n")
    async with running_app(tmp_path, PACKS, config, observers=(door,)) as app:
        reply = await app.run("web.fetch(url='x')", tape=Replay(read_cassette(file), str))
        assert not app.host.servers.state(app.picture.servers["web"])
    assert (reply.text, door.tools) == ("answered", [])
