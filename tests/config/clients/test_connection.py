"""OneTool is entered in the files of clients and taken out again, and nothing else in them changes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.clients.client_texts import json_files, toml_files
from config.desk import write
from ot.config.clients.client_file import ServerList, read_from_disk, server_list
from ot.config.clients.connection import (
    ClientChange,
    EntryWanted,
    installed_clients,
    plan_connect,
    plan_disconnect,
    write_change,
)
from ot.config.clients.connection_notes import ConnectionNotes
from ot.config.clients.json_text import GAP
from ot.config.clients.known_clients import CLIENTS, Client
from ot.config.clients.server_entry import Surroundings
from ot.config.paths import Paths
from ot.errors import ConfigError

COMMAND = EntryWanted(("/opt/bin/onetool", "serve"))


@dataclass(frozen=True)
class Machine:
    """A home with the file of one client in it."""

    home: Path
    client: Client

    @property
    def around(self) -> Surroundings:
        return Surroundings(self.home, self.home / "work", {}, "linux")

    @property
    def paths(self) -> Paths:
        return Paths.of(self.home / "work", self.home / ".onetool")

    @property
    def notes(self) -> ConnectionNotes:
        return ConnectionNotes(self.paths)

    @property
    def file(self) -> Path:
        return self.client.own_file(self.around).file

    @property
    def listed(self) -> ServerList:
        return server_list(self.client, read_from_disk(self.file), self.around)

    def connect(self, wanted: EntryWanted = COMMAND, *, taken_out: tuple[str, ...] = ()) -> ClientChange:
        return self._written(plan_connect(self.client, self.around, wanted, self.notes, taken_out))

    def disconnect(self) -> ClientChange:
        return self._written(plan_disconnect(self.client, self.around, self.notes))

    def _written(self, change: ClientChange) -> ClientChange:
        if change.changes:
            write_change(change, self.paths, self.notes)
        return change


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that many files are tried in, one after the other."""
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(params=CLIENTS)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """A machine of somebody who uses one client."""
    return Machine(tmp_path, CLIENTS[request.param])


@st.composite
def files_of_clients(draw: st.DrawFn) -> tuple[str, str]:
    """Return a client's name and a file of that client."""
    client = CLIENTS[draw(st.sampled_from(list(CLIENTS)))]
    (path, key), *_ = client.files.items()
    return client.name, draw((toml_files if path.endswith(".toml") else json_files)(key))


def _same(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def only_inserted(old: str, new: str) -> bool:
    """Return whether *new* is *old* with one piece more, and perhaps one comma before that."""
    start = _same(old, new)
    end = _same(old[start:][::-1], new[start:][::-1])
    middle = old[start : len(old) - end]
    return not middle or new[start:].startswith("," + middle)


# ---------------------------------------------------------------- whatever the file looks like


@settings(max_examples=60)
@given(given_file=files_of_clients(), moves=st.booleans())
def test_what_is_not_ours_survives_byte_for_byte_and_undo_restores_the_bytes(
    desk: Path, given_file: tuple[str, str], moves: bool
) -> None:
    name, text = given_file
    machine = Machine(desk, CLIENTS[name])
    write(machine.file, text)
    before = machine.listed.text.data
    machine.connect()
    assert only_inserted(text, machine.file.read_bytes().decode())
    listed = machine.listed
    assert list(listed.servers)[-1] == "onetool"
    assert listed.servers["onetool"] == machine.client.own_entry(COMMAND.command, {})
    own = {**before.get(listed.key, {}), "onetool": listed.servers["onetool"]}
    assert listed.text.data == {**before, listed.key: own}
    assert not machine.connect().changes
    if moves:  # OneTool was installed elsewhere, and connected again
        assert machine.connect(replace(COMMAND, command=("/srv/onetool", "serve"))).changes
    machine.disconnect()
    assert machine.file.read_bytes() == text.encode()


@settings(max_examples=60)
@given(given_file=files_of_clients(), takes=st.booleans())
def test_undo_takes_only_our_entry_out_of_a_file_that_was_changed_since(
    desk: Path, given_file: tuple[str, str], takes: bool
) -> None:
    name, text = given_file
    theirs = "\n# theirs\n" if name == "codex" else "\n// theirs\n"
    machine = Machine(desk, CLIENTS[name])
    write(machine.file, text)
    others = dict(machine.listed.servers)
    gone = next(iter(others), "") if takes else ""
    machine.connect(taken_out=(gone,))
    write(machine.file, machine.file.read_bytes() + theirs.encode())
    machine.disconnect()
    assert machine.listed.servers == others
    if gone:
        return  # put back at the end, in the style of the file
    left, expected = ("".join(each.split()) for each in (machine.file.read_bytes().decode(), text + theirs))
    # No character is missing or new; only blanks may be. Where there was no object at all, an empty one stays.
    assert left == expected or (GAP.fullmatch(text) and left.replace("{}", "", 1) == expected)


# ---------------------------------------------------------------- single cases


def test_a_file_that_was_not_there_is_made_and_removed_again(machine: Machine) -> None:
    machine.connect()
    assert machine.file.stat().st_mode & 0o777 == 0o600
    assert list(machine.listed.servers) == ["onetool"]
    machine.disconnect()
    assert not machine.file.exists()


def test_a_link_stays_one_and_permissions_stay(machine: Machine, tmp_path: Path) -> None:
    real = write(tmp_path / "dotfiles" / machine.file.name, "")
    real.chmod(0o640)
    machine.file.parent.mkdir(parents=True, exist_ok=True)
    machine.file.symlink_to(real)
    machine.connect()
    assert machine.file.is_symlink()
    assert b"onetool" in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o640
    machine.disconnect()
    assert machine.file.is_symlink()
    assert real.read_bytes() == b""


def test_a_copy_is_kept_that_only_its_owner_can_read(tmp_path: Path) -> None:
    machine = Machine(tmp_path, CLIENTS["cursor"])
    write(machine.file, '{"mcpServers": {"a": {"env": {"TOKEN": "s3cret"}}}}')
    machine.connect()
    (copy,) = (tmp_path / ".onetool" / "backups").iterdir()
    assert copy.read_text() == '{"mcpServers": {"a": {"env": {"TOKEN": "s3cret"}}}}'
    assert copy.stat().st_mode & 0o777 == 0o600


def test_without_the_copy_undo_still_removes_the_entry(tmp_path: Path) -> None:
    machine = Machine(tmp_path, CLIENTS["cursor"])
    write(machine.file, '{"mcpServers": {"a": {}}}')
    machine.connect()
    (copy,) = (tmp_path / ".onetool" / "backups").iterdir()
    copy.unlink()
    machine.disconnect()
    assert machine.file.read_text() == '{"mcpServers": {"a": {}}}'


@pytest.mark.parametrize(
    ("name", "text", "line", "why"),
    [
        ("cursor", '{\n  "mcpServers": {\n    "a" {}\n  }\n}', 3, "malformed"),
        ("zed", '// fine\n{ "a": 1, /* x\n */ "b" }', 3, "malformed"),
        ("vscode", '{\n\n  "servers": []\n}', 3, "'servers' is not a list of servers by name"),
        ("claude-code", "[]", None, "not contain a JSON object"),
        ("codex", "a = 1\n[mcp_servers\n", 2, "malformed"),
        ("codex", 'a = 1\nmcp_servers = { a = { command = "x" } }\n', 2, "cannot be changed there safely"),
        ("gemini-cli", b'{"a": 1,\n"b": "\xff"}', 2, "not UTF-8"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line_and_left_alone(
    tmp_path: Path, name: str, text: str | bytes, line: int | None, why: str
) -> None:
    machine = Machine(tmp_path, CLIENTS[name])
    write(machine.file, text)
    before = machine.file.read_bytes()
    with pytest.raises(ConfigError, match=why) as refused:
        machine.connect()
    assert refused.value.line == line
    assert machine.file.read_bytes() == before


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("pipe", "not a regular file"),
        ("device", "not a regular file"),
        ("huge", "larger than"),
        ("folder", "directory"),
    ],
)
@pytest.mark.parametrize("way", ["connect", "disconnect"])
def test_what_is_not_a_usable_file_is_refused_at_once_and_left_alone(
    tmp_path: Path, kind: str, why: str, way: str
) -> None:
    machine = Machine(tmp_path, CLIENTS["cursor"])
    machine.file.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(machine.file)
    elif kind == "device":
        machine.file.symlink_to("/dev/zero")
    elif kind == "folder":
        machine.file.mkdir()
    else:
        with machine.file.open("wb") as file:
            file.truncate(1 << 40)

    def look() -> tuple[int, ...]:
        found = os.lstat(machine.file)  # but for when it was last looked at
        return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns

    before = look()
    with pytest.raises(ConfigError, match=why):
        getattr(machine, way)()
    assert look() == before


def test_a_file_that_changes_between_the_question_and_the_answer_is_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, CLIENTS["claude-code"])
    write(machine.file, "{}")
    change = plan_connect(machine.client, machine.around, COMMAND, machine.notes)
    write(machine.file, '{"numStartups": 2}')
    with pytest.raises(ConfigError, match="has just changed"):
        write_change(change, machine.paths, machine.notes)
    assert machine.file.read_text() == '{"numStartups": 2}'


def test_what_its_user_added_to_our_entry_stays(machine: Machine) -> None:
    machine.connect()
    change = machine.listed.put("onetool", "env", value={"OT_CWD": "/srv"}).put("onetool", "mine", value=True)
    write(machine.file, change.encoded)
    machine.connect(replace(COMMAND, command=("/new/onetool", "serve"), env={"MORE": "1"}))
    entry: dict[str, Any] = machine.listed.servers["onetool"]
    assert (entry["command"], entry["mine"]) == ("/new/onetool", True)
    assert entry["env"] == {"OT_CWD": "/srv", "MORE": "1"}


def test_more_patience_than_ours_stays(tmp_path: Path) -> None:
    machine = Machine(tmp_path, CLIENTS["codex"])
    text = '[mcp_servers.onetool] # ours\ncommand = "onetool" # short\nstartup_timeout_sec = 90\ntool_timeout_sec = 5\n'
    write(machine.file, text)
    machine.connect()
    assert machine.file.read_text() == (
        '[mcp_servers.onetool] # ours\ncommand = "/opt/bin/onetool"  # short\nstartup_timeout_sec = 90\n'
        'tool_timeout_sec = 600\nargs = ["serve"]\n'
    )


@pytest.mark.parametrize(("own", "then"), [(', "alwaysLoad": false', False), ("", True)])
def test_connect_keeps_the_users_always_load_false(tmp_path: Path, own: str, then: bool) -> None:
    machine = Machine(tmp_path, CLIENTS["claude-code"])
    write(machine.file, f'{{"mcpServers": {{"onetool": {{"command": "onetool"{own}}}}}}}')
    machine.connect()
    assert machine.listed.servers["onetool"]["alwaysLoad"] is then


def test_an_entry_on_one_line_of_toml_stays_on_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path, CLIENTS["codex"])
    write(machine.file, '[mcp_servers]\nonetool = { command = "onetool", enabled = true }\nb = { command = "x" }\n')
    machine.connect()
    assert (
        machine.file.read_text().splitlines()[1].startswith('onetool = { command = "/opt/bin/onetool", enabled = true')
    )
    assert machine.listed.servers["onetool"]["startup_timeout_sec"] == 60


def test_servers_taken_out_at_different_times_are_all_put_back(machine: Machine) -> None:
    servers = {name: {"command": name, "args": ["x"]} for name in ("a", "b", "c")}
    listed = machine.listed
    for name, entry in servers.items():
        listed = listed.put(name, value=entry)
    write(machine.file, listed.encoded)
    for name in ("a", "b"):
        machine.connect(taken_out=(name,))
        write(machine.file, machine.file.read_bytes() + b"\n\n")
    assert list(machine.listed.servers) == ["c", "onetool"]
    assert machine.disconnect().put_back == ("a", "b")
    assert machine.listed.servers == servers


def test_servers_are_put_back_where_they_were(machine: Machine) -> None:
    servers = {name: {"command": name, "args": ["x"]} for name in ("a", "b", "c", "d", "e")}
    listed = machine.listed
    for name, entry in servers.items():
        listed = listed.put(name, value=entry)
    write(machine.file, listed.encoded)
    machine.connect(taken_out=("a", "b", "d"))
    write(machine.file, machine.file.read_bytes() + b"\n\n")
    machine.disconnect()
    assert list(machine.listed.servers.items()) == list(servers.items())


def test_servers_are_put_back_though_our_entry_was_removed_by_hand(machine: Machine) -> None:
    listed = machine.listed.put("a", value={"command": "x"}).put("b", value={"command": "y"})
    write(machine.file, listed.encoded)
    machine.connect(taken_out=("b",))
    write(machine.file, machine.listed.remove("onetool").encoded)
    assert machine.disconnect().put_back == ("b",)
    assert list(machine.listed.servers) == ["a", "b"]


def test_a_client_that_lists_the_servers_it_may_use_may_use_onetool(tmp_path: Path) -> None:
    machine = Machine(tmp_path, CLIENTS["gemini-cli"])
    text = '{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}}}'
    write(machine.file, text)
    machine.connect(taken_out=("a",))
    assert machine.listed.text.data["mcp"] == {"allowed": ["a", "onetool"]}
    write(machine.file, machine.file.read_bytes() + b"\n")
    machine.disconnect()
    assert machine.listed.text.data == json.loads(text)


def test_another_server_of_the_same_name_is_refused(machine: Machine) -> None:
    write(machine.file, machine.listed.put("onetool", value={"command": "other-program"}).encoded)
    before = machine.file.read_bytes()
    with pytest.raises(ConfigError, match="another server called 'onetool'"):
        machine.connect()
    assert machine.file.read_bytes() == before
    machine.connect(replace(COMMAND, name="ot"))
    assert list(machine.listed.servers) == ["onetool", "ot"]
    machine.disconnect()
    assert machine.file.read_bytes() == before


def test_a_server_that_took_our_name_since_is_not_removed(machine: Machine) -> None:
    machine.connect()
    write(machine.file, machine.listed.put("onetool", "command", value="other").encoded)
    assert not machine.disconnect().changes


def test_onetool_is_found_under_the_name_that_its_user_gave_it(machine: Machine) -> None:
    entry = {"command": "uvx", "args": ["--from", "onetool-run", "onetool", "serve"]}
    write(machine.file, machine.listed.put("tools", value=entry).encoded)
    machine.connect()
    assert list(machine.listed.servers) == ["tools"]
    assert machine.listed.servers["tools"]["command"] == "/opt/bin/onetool"
    assert not plan_disconnect(machine.client, machine.around, machine.notes, "other").changes
    machine.disconnect()
    assert machine.listed.servers == {}


def test_clients_are_found_by_their_file_their_directory_or_their_command(tmp_path: Path) -> None:
    around = Surroundings(tmp_path, tmp_path / "work", {"PATH": str(tmp_path / "bin")}, "linux")
    assert installed_clients(around) == []
    write(tmp_path / ".claude.json", "{}")
    (tmp_path / ".cursor").mkdir()
    program = write(tmp_path / "bin" / "gemini", "#!/bin/sh\n")
    program.chmod(0o700)
    assert installed_clients(around) == ["claude-code", "cursor", "gemini-cli"]


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"), ("codex", "CODEX_HOME", "config.toml")],
)
def test_a_client_that_was_moved_by_a_variable_is_found(tmp_path: Path, name: str, variable: str, file: str) -> None:
    around = Surroundings(tmp_path, tmp_path, {variable: str(tmp_path / "moved")}, "linux")
    assert CLIENTS[name].own_file(around).file == tmp_path / "moved" / file
