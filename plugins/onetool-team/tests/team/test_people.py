"""Everyone who uses a team's server has a workspace of their own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.elicitation import ElicitResult

from http_server import call
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send
from onetool_team.identity import SCOPE_KEY, Identity
from onetool_team.workspaces import PEOPLE, directory_name
from ot.errors import ConfigError
from ot.logs import current_principal
from proxied.desk import fake, until
from team.team_bed import post, principal, run, team, text_of

pytestmark = pytest.mark.anyio

ANN = principal("ann")


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def people(tmp_path: Path, **more: Any) -> dict[str, Any]:
    return {"http": {"workspaces": {"each": str(tmp_path / "people"), **more}}}


async def test_each_principal_works_in_a_directory_of_their_own_in_both_eras(tmp_path: Path, mode: str) -> None:
    async with team(tmp_path, people(tmp_path)) as bed:
        for name in ("ann", "bob"):
            async with bed.client(name, mode) as client:
                await run(client, f"file.write(path='note.txt', content='of {name}')")
        for name in ("ann", "bob"):
            async with bed.client(name, mode) as client:
                assert f"of {name}" in text_of(await run(client, "file.read(path='note.txt')"))
    places = sorted((tmp_path / "people").iterdir())
    assert [place.name.partition("-")[0] for place in places] == ["ann", "bob"]
    assert all(place.stat().st_mode & 0o777 == 0o700 for place in places)


async def test_what_is_logged_for_a_run_says_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list[tuple[str, str]]()
    keep = logging.Handler()
    keep.emit = lambda record: lines.append((current_principal.get(), record.getMessage()))
    monkeypatch.setattr(logging.getLogger("ot"), "level", logging.INFO)
    logging.getLogger("ot").manager._clear_cache()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - as setLevel does
    logging.getLogger("ot").addHandler(keep)
    try:
        async with team(tmp_path, people(tmp_path)) as bed:
            await asyncio.gather(*(bed.run(name, f"file.write(path='{name}', content='')") for name in ("ann", "bob")))
    finally:
        logging.getLogger("ot").removeHandler(keep)
    for name in ("ann", "bob"):
        assert [who for who, line in lines if "tool.call" in line and f"path='{name}'" in line] == [principal(name)]
    assert {who for who, line in lines if "runner.execute" in line} == {principal("ann"), principal("bob")}
    assert current_principal.get() == ""


async def test_those_who_come_at_the_same_time_share_one_workspace(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        texts = await asyncio.gather(*(bed.run("ann", "ot.health()['cwd']") for _ in range(20)))
        assert len(set(texts)) == 1 and len(bed.front) == 1


async def test_without_a_directory_for_each_work_does_not_last_and_is_never_the_servers_own(
    tmp_path: Path, home: Path
) -> None:
    async with team(tmp_path) as bed:
        cwd = Path(await bed.run("ann", "ot.health()['cwd']"))
        await bed.run("ann", "file.write(path='a.txt', content='x')")
        assert (cwd / "a.txt").exists() and cwd.is_relative_to(home / ".local" / "state" / "onetool")
        assert not cwd.is_relative_to(tmp_path) and _mode(cwd) == 0o700
        bed.front.close_idle(0)
        await until(lambda: not cwd.exists())
        assert "does not exist" in await bed.run("ann", "file.read(path='a.txt')")
    assert not any((home / ".local" / "state" / "onetool" / "workspaces").iterdir())


async def test_an_idle_workspace_is_closed_and_opened_again(tmp_path: Path) -> None:
    async with team(tmp_path, people(tmp_path)) as bed:
        await bed.run("ann", "file.write(path='a.txt', content='kept')")
        bed.front.close_idle(3600)
        assert len(bed.front) == 1
        bed.front.close_idle(0)
        assert len(bed.front) == 0
        assert "kept" in await bed.run("ann", "file.read(path='a.txt')")


async def test_a_workspace_that_keeps_a_session_is_not_idle(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        await bed.run("ann", "x = 1", session="work")
        bed.front.close_idle(0)
        assert await bed.run("ann", "x", session="work") == "1"


async def test_the_workspace_used_longest_ago_makes_room_and_nobody_in_use_does(tmp_path: Path) -> None:
    async with team(tmp_path, people(tmp_path, most=2)) as bed:
        for name in ("ann", "bob", "cid"):
            await bed.run(name, "1")
        assert len(bed.front) == 2
        async with bed.front.enter(principal("bob")), bed.front.enter(principal("cid")):
            outcomes = list[str]()
            bed.front.note_refusal = outcomes.append
            refused = await bed.post("ann", call("1"))
            assert refused.status == 503 and b"retry-after" in refused.headers
            said = refused.reply["error"]
            assert "no room for another user" in said["message"] and said["data"]["begun"] is False
            assert outcomes == ["NoRoom"]
        assert await bed.run("ann", "1") == "1"


async def test_a_run_that_waits_for_an_answer_keeps_its_workspace_open(tmp_path: Path) -> None:
    config = {"servers": {"fake": fake()}, "policy": {"ask": ["fake.effect"]}}
    async with team(tmp_path, config) as bed:
        asked, answer = asyncio.Event(), asyncio.Event()

        async def person(*_: Any) -> ElicitResult[dict[str, str]]:
            asked.set()
            await answer.wait()
            return ElicitResult(action="accept", content={"decision": "allow"})

        async with bed.client("ann", elicitation_handler=person) as client:
            running = asyncio.ensure_future(run(client, "fake.effect(file='/dev/null', word='x')"))
            await until(asked.is_set)
            await until(lambda: bed.front._open[ANN].users == 0)  # pyright: ignore[reportPrivateUsage] - the request is over
            bed.front.close_idle(0)
            assert len(bed.front) == 1
            answer.set()
            assert not (await running).is_error
        bed.front.close_idle(0)
        assert len(bed.front) == 0


async def test_what_one_principal_always_allows_holds_for_nobody_else_and_is_not_written(tmp_path: Path) -> None:
    config = {"servers": {"fake": fake()}, "policy": {"ask": ["fake.effect"]}}
    program = "fake.effect(file='/dev/null', word='x')"
    async with team(tmp_path, config) as bed:
        before = (bed.home / "onetool.yaml").read_text()
        asked: list[str] = []

        async def always(message: str, *_: Any) -> ElicitResult[dict[str, str]]:
            asked.append(message)
            return ElicitResult(action="accept", content={"decision": "always"})

        for _ in range(2):
            async with bed.client("ann", elicitation_handler=always) as client:
                assert not (await run(client, program)).is_error
        assert len(asked) == 1
        text = await bed.run("bob", program)
        assert "was not called" in text and "ask who operates this server" in text
        assert (bed.home / "onetool.yaml").read_text() == before


async def test_a_principals_directory_is_never_a_project(tmp_path: Path) -> None:
    async with team(tmp_path, people(tmp_path)) as bed:
        await bed.run("ann", "1")
        cwd = tmp_path / "people" / directory_name(ANN)
        brought = cwd / ".onetool"
        (brought / "tools" / "evil").mkdir(parents=True)
        (brought / "tools" / "evil" / "evil_tools.py").write_text("def f() -> int:\n    '''F.'''\n    return 1\n")
        config = {"servers": {"bad": fake()}, "aliases": {"mine": "file.read"}, "policy": {"allow": ["*"]}}
        (brought / "onetool.yaml").write_text(json.dumps(config))
        for _ in range(2):
            assert "evil" not in await bed.run("ann", "ot.packs()")
            assert await bed.run("ann", "ot.config()['servers']") == "[]"
            workspace = bed.front._open[ANN].workspace  # pyright: ignore[reportPrivateUsage] - what it read is the subject
            assert workspace.picture.loaded.project_state == "none" and not workspace.picture.servers
            bed.front.close_idle(0)
            await until(lambda: len(bed.front) == 0)


async def test_own_secrets_win_over_the_operators_and_make_another_connection(tmp_path: Path) -> None:
    config = {"servers": {"fake": fake(env={"TOKEN": "${TOKEN}"})}}
    home = tmp_path / "operator"
    for directory, value in ((home, "operators"), (home / PEOPLE / directory_name(ANN), "of-ann-alone")):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "secrets.yaml").write_text(f"TOKEN: {value}\n")
        (directory / "secrets.yaml").chmod(0o600)
    async with team(tmp_path, config) as bed:
        await asyncio.gather(bed.run("ann", "1"), bed.run("bob", "1"))
        specs = {name: bed.front._open[principal(name)].workspace.picture.servers["fake"] for name in ("ann", "bob")}  # pyright: ignore[reportPrivateUsage] - as above
        assert [specs[name].env["TOKEN"] for name in ("ann", "bob")] == ["of-ann-alone", "operators"]
        assert specs["ann"].key != specs["bob"].key and specs["ann"].cwd != specs["bob"].cwd
        # What the operator's server offers is known of bob's; ann's has another token, and may offer something else.
        assert specs["bob"].identity.common and not specs["ann"].identity.common
        # Nobody can find out another's secret by looking at what is redacted.
        assert await bed.run("bob", "'of-ann-' + 'alone'") == "of-ann-alone"
        assert "of-ann-alone" not in await bed.run("ann", "'of-ann-' + 'alone'")
        assert "of-ann-alone" not in bed.front.workspace.host.redaction.redact("a line with of-ann-alone")


async def test_only_administrators_change_what_others_use_and_see_how_it_is(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        assert "for administrators" in await bed.run("ann", "ot.reload()")
        assert "for administrators" in await bed.run("ann", "ot.notify(topic='a', message='b')")
        assert await bed.run("ann", "'stats' in ot.health()") == "false"
        assert (await bed.post("root run admin", call("ot.health()['stats']['status']"))).text == "ok"
        assert "reloaded" in (await bed.post("root run admin", call("ot.reload()"))).text


async def test_others_handles_sessions_and_runs_are_not_found(tmp_path: Path) -> None:
    config = {"servers": {"fake": fake()}, "policy": {"ask": ["fake.effect"]}, "output": {"max_inline_size": 500}}
    async with team(tmp_path, config) as bed:
        handle = json.loads(await bed.run("ann", "['secret of ann'] * 100"))["handle"]
        assert f"result '{handle}' not found" in await bed.run("bob", f"ot.result(handle={handle!r})")
        await bed.run("ann", "x = 1", session="work")
        assert "there is no session 'work'" in await bed.run("bob", "ot.session(name='work')")
        request = call("fake.effect(file='/dev/null', word='x')")
        request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {"form": {}}}
        question = (await bed.post("ann", request)).reply["result"]
        answer = {"answer": {"action": "accept", "content": {"decision": "allow"}}}
        request["params"] |= {"requestState": question["requestState"], "inputResponses": answer}
        assert "waits for this answer" in json.dumps((await bed.post("bob", request)).reply)
        assert not (await bed.post("ann", request)).reply["result"].get("isError")


async def test_figures_are_of_the_one_who_asks(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        for _ in range(3):
            await bed.run("ann", "file.write(path='a.txt', content='x')")
        assert await bed.run("bob", "ot.stats()['total_calls']") == "0"
        assert await bed.run("ann", "ot.stats()['total_calls']") == "3"


async def test_a_request_of_nobody_runs_nothing(tmp_path: Path) -> None:
    async with team(tmp_path) as bed:
        for identity in (None, Identity("uid:0", "root"), Identity(ANN, "ann", frozenset())):
            text = (await post(as_whoever(bed.mcp, identity), "ann", call("1"))).text
            assert "nobody is known" in text or "lacks the scope" in text
        assert len(bed.front) == 0


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def as_whoever(app: AsgiApp, identity: Identity | None) -> AsgiApp:
    """Return *app* as a layer would leave it that let everybody through."""

    async def passed(scope: Scope, receive: Receive, send: Send) -> None:
        scope[SCOPE_KEY] = identity
        await app(scope, receive, send)

    return passed


async def test_what_only_the_operator_may_say_is_checked_when_the_server_starts(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    loose = tmp_path / "loose"
    loose.mkdir()
    loose.chmod(0o777)
    for config, said in (
        (people(tmp_path, shared=[str(tmp_path)]), "must not contain each other"),
        (people(tmp_path, shared=["library"]), "by their full path"),
        ({"http": {"workspaces": {"each": "people"}}}, "absolute path"),
        ({"http": {"workspaces": {"each": str(loose)}}}, "other users can write"),
        ({"engines": {"use": "trusted"}}, "no jail"),
    ):
        with pytest.raises(ConfigError, match=said):
            async with team(tmp_path, config):
                pass


async def test_a_link_in_the_place_of_a_principals_directory_is_not_followed(tmp_path: Path) -> None:
    async with team(tmp_path, people(tmp_path)) as bed:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "people" / directory_name(ANN)).symlink_to(tmp_path / "elsewhere")
        refused = await bed.post("ann", call("file.write(path='a.txt', content='x')"))
        assert refused.status == 503
        assert "could not be opened" in refused.reply["error"]["message"]
        assert not any((tmp_path / "elsewhere").iterdir())
        assert await bed.run("bob", "1") == "1"


async def test_a_shared_directory_is_read_by_all_written_by_nobody_and_leads_nowhere_else(tmp_path: Path) -> None:
    library, outside = tmp_path / "library", tmp_path / "outside"
    for one in (library / "sub", outside):
        one.mkdir(parents=True)
    (library / "page").write_text("for all")
    (outside / "key").write_text("canary-outside")
    (library / "way").symlink_to(outside)
    (library / "key").symlink_to(outside / "key")
    async with team(tmp_path, people(tmp_path, shared=[str(library)])) as bed:
        await bed.run("bob", "file.write(path='key', content='canary-of-bob')")
        bobs = tmp_path / "people" / directory_name(principal("bob"))
        before = {path: os.lstat(path).st_mtime_ns for path in (library, *library.rglob("*"), *outside.rglob("*"))}
        assert "for all" in await bed.run("ann", f"file.read(path='{library}/page')")
        places = (f"{library}/way/key", f"{library}/key", f"{library}/../outside/key", f"{bobs}/key")
        reads = [f"file.read(path='{place}')" for place in places] + [f"open('{place}').read()" for place in places]
        writes = [
            f"file.write(path='{library}/new', content='x')",
            f"file.write(path='{library}/page', content='x')",
            f"file.write(path='{library}/sub/../new', content='x')",
            f"file.make_directory(path='{library}/new')",
            f"file.delete(path='{library}/page')",
            f"file.move(source='{library}/page', target='page')",
            f"file.copy(source='{library}/page', target='{library}/copy')",
            f"open('{library}/page', 'a').write('x')",
            f"import os\nos.rename('{library}/page', 'page')",
            f"import os\nos.remove('{library}/page')",
            f"import os\nos.symlink('{outside}', 'link')\nopen('link/key').read()",
        ]
        answers = [await bed.run("ann", command) for command in (*reads, *writes)]
    assert [command for command, text in zip((*reads, *writes), answers, strict=True) if "Error" not in text] == []
    assert "canary" not in "".join(answers)
    assert {path: os.lstat(path).st_mtime_ns for path in before} == before
    assert sorted(path.name for path in library.rglob("*")) == ["key", "page", "sub", "way"]


def test_names_of_directories_can_be_read_and_are_nobody_elses() -> None:
    assert directory_name("https://idp.example|Ann.Lee@example.com").startswith("ann-lee-example-com-")
    assert directory_name("https://idp.example|../../etc").startswith("etc-")
    pairs = (("https://a|ann", "https://b|ann"), ("token|Ann", "token|ann"), ("x|" + "a" * 90, "x|" + "a" * 91))
    assert all(directory_name(one) != directory_name(other) for one, other in pairs)
    assert directory_name("token|\u540d").startswith("principal-")
