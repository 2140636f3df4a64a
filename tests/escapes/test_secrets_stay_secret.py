"""What the user keeps in a secrets file or the environment is in no reply, error, log or stored result."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from bed import write
from escapes.house import House
from ot.cli.terminal import own_workspace
from ot.workspace import Workspace

pytestmark = pytest.mark.anyio

FILE_SECRET, ENV_SECRET = "canary-file-secret-7f3a", "canary-env-secret-7f3a"
ENVIRONMENT = {"API_KEY": ENV_SECRET, "SBX_CANARY": "canary-unused-7f3a"}
CANARIES = (FILE_SECRET, ENV_SECRET, "canary-unused-7f3a")
SETTINGS = """\
logs: {level: DEBUG}
output: {max_inline_size: 2000}
security: {roots: ["~"]}
projects: {site: {path: ~/site, attrs: {token: "${TOKEN}", deep: [{key: "${TOKEN}"}]}}}
"""


TELL = """\
try:
    said = str({call})
except Exception as error:
    said = str(error)
[said, said[::-1]]"""


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A user with secrets, whose whole home directory is open to tools."""
    house = House.make(tmp_path)
    for name, value in (ENVIRONMENT | {"HOME": str(house.home)}).items():
        monkeypatch.setenv(name, value)
    house.user_file(SETTINGS)
    house.user_file(f"TOKEN: {FILE_SECRET}\n", "secrets.yaml")
    return house


def forms(text: str) -> list[str]:
    """Return what *text* says, also to one who reads it backwards or in base64."""
    decoded = [part.decode(errors="replace") for line in text.split('"') if (part := _decoded(line))]
    return [text, text[::-1], *decoded]


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def assert_no_canary(text: str) -> None:
    for form in forms(text):
        for canary in CANARIES:
            assert canary not in form


@pytest.mark.parametrize(
    "program",
    [
        "file.read(path='~/.onetool/secrets.yaml')",
        "file.read(path='{home}/.onetool/secrets.yaml')",
        "file.read(path='../home/.onetool/secrets.yaml')",
        "file.read(path='link')",
        "file.read(path='folder/secrets.yaml')",
        "file.read(path='~/.OneTool/secrets.yaml')",
        "file.read(path='~/.onetool/onetool.yaml')",
        "file.search(pattern='canary', path='~')",
        "file.search(pattern='canary', path='~', glob='**/.onetool/*')",
        "file.search(pattern='canary', path='~/.onetool/secrets.yaml')",
        "file.glob(pattern='**/*', path='~')",
        "file.list(path='~', depth=9, hidden=True)",
        "file.info(path='~/.onetool/secrets.yaml')",
        "file.read(path='/proc/self/environ')",
        "file.read(path='environ')",
    ],
)
async def test_a_program_cannot_read_secrets_with_a_tool(house: House, program: str) -> None:
    (house.cwd / "link").symlink_to(house.user / "secrets.yaml")
    (house.cwd / "folder").symlink_to(house.user)
    (house.cwd / "environ").symlink_to("/proc/self/environ")
    command = TELL.format(call=program.replace("{home}", str(house.home)))
    app = house.app()
    reply = await app.run(command)
    await app.aclose()
    assert not reply.is_error
    assert_no_canary(str(reply.texts))


def test_a_server_tells_its_secrets_nowhere(house: House) -> None:
    house.user_file(SETTINGS + 'tools: {file: {max_bytes: "${TOKEN}", search_seconds: "${API_KEY}"}}\n')
    write(house.cwd / "note.txt", "a note")
    commands = [
        "file.read(path='note.txt')",
        "try:\n    file.read(path='note.txt')\nexcept Exception as error:\n    print(error)\n",
        "try:\n    file.read(path='note.txt')\nexcept Exception as error:\n    r = str(error)\nr * 100",
        "raise ValueError(str(proj.list()))",
        *(f"[ot.{call}, proj.list()]" for call in ("config()", "health()", "tools(info='full')", "help(query='file')")),
        "$token",
        "proj.site",
    ]
    with house.stdio() as server:
        for command in commands:
            assert_no_canary(server.run(command).raw_line.decode())
        server.run("ot.reload()")
        for uri in ("ot://tools", "ot://tool/file.read", "ot://tool/ot.config"):
            assert_no_canary(server.request("resources/read", {"uri": uri}).raw_line.decode())
        server.close()
        assert_no_canary(server.stderr_text())
    assert_no_canary("".join(path.read_text() for path in (house.user / "tmp").rglob("*") if path.is_file()))


async def test_a_secret_in_a_project_s_attributes_does_not_reach_a_program(house: House) -> None:
    app = house.app()
    reply = await app.run("r = str(proj.list())\n[r, r[::-1]]")
    await app.aclose()
    assert "site" in reply.texts[0]
    assert_no_canary(reply.texts[0])


def test_a_secret_in_a_large_result_is_stored_without_it_and_read_back_without_it(house: House) -> None:
    write(house.cwd / "dump.txt", f"token={FILE_SECRET}\n" * 500)
    with house.stdio() as server:
        reply = server.run("file.read(path='dump.txt')")
        assert "[secret:TOKEN]" in reply.text
        stored = list((house.user / "tmp").glob("result-*.txt"))
        assert len(stored) == 1
        assert_no_canary(stored[0].read_text())
        handle = stored[0].stem.removeprefix("result-")
        assert_no_canary(server.run(f"ot.result(handle='{handle}')").raw_line.decode())
        page = server.request("resources/read", {"uri": f"ot://result/{handle}"})
        assert "[secret:TOKEN]" in page.raw_line.decode()
        assert_no_canary(page.raw_line.decode())


@pytest.mark.parametrize("place", ["../../work/keys.yaml", "keys.yaml"])
async def test_a_secrets_file_in_another_place_is_hidden_there(house: House, place: str) -> None:
    house.user_file(f"secrets_file: {place}\n")
    write(house.user / place, f"TOKEN: {FILE_SECRET}\n")
    await assert_hidden(house, "keys.yaml")
    await assert_hidden(house, "../home/.onetool/keys.yaml")


async def test_a_project_s_secrets_file_of_another_name_is_hidden(house: House) -> None:
    house.project_file("secrets_file: keys.yaml\n")
    house.project_file(f"TOKEN: {FILE_SECRET}\n", "keys.yaml")
    house.trust()
    await assert_hidden(house, ".onetool/keys.yaml")


async def assert_hidden(house: House, path: str) -> None:
    app = house.app()
    try:
        for call in (
            f"file.read(path={path!r})",
            f"file.search(pattern='canary', path={path!r})",
            "file.search(pattern='canary', path='.')",
        ):
            reply = await app.run(f"r = str({call})\nr[::-1]")
            assert_no_canary(str(reply.texts))
    finally:
        await app.aclose()


def test_the_log_knows_the_secrets_that_a_reload_has_brought(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    apps: list[Workspace] = []
    monkeypatch.chdir(house.cwd)

    async def reload_and_log(app: Workspace, packs: Sequence[str]) -> None:
        apps.append(app)
        house.user_file("TOKEN: canary-new-secret\n", "secrets.yaml")
        apps[0].picture = apps[0]._picture(apps[0]._load())
        logging.getLogger("ot_tools.file").warning("the server said canary-new-secret")

    monkeypatch.setattr(own_workspace, "serve", reload_and_log)
    loggers = [logging.getLogger(name) for name in ("ot", "ot_tools")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    try:
        own_workspace.serve_stdio(trust_project=False)
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers[:], logger.propagate = handlers, propagate
            logger.setLevel(level)
    assert "the server said [secret:TOKEN]" in capsys.readouterr().err
