"""Where a server starts: by itself where the user wrote, in the workspace while that is trusted, else in private."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from config.desk import Desk, write
from ot.config.trust import Trust
from ot.proxied.place import BARRIERS, make_home, runs_modules
from ot.proxied.spec import ServerSpec, resolve_specs, servers_here
from proxied.desk import FAKE, door_to


@pytest.fixture
def desk(tmp_path: Path, home: Path) -> Desk:
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Desk(cwd, home / ".onetool")


def spec(desk: Desk, trusted: bool = False, **server: Any) -> ServerSpec:
    desk.write_user(json.dumps({"servers": {"s": {"command": "sh", **server}}}))
    return resolve_specs(desk.load(), desk.paths, trusted=trusted)["s"]


def trust_here(desk: Desk) -> None:
    """Say what `onetool trust --yes` says of servers."""
    desk.trust.trust_servers_in(desk.cwd, servers_here(desk.load(trust_project=True), desk.paths))


# ---------------------------------------------------------------- private directories


def test_a_server_has_a_directory_of_its_own_whatever_directory_the_client_stands_in(
    desk: Desk, tmp_path: Path
) -> None:
    made = spec(desk)
    other = Desk(tmp_path, desk.user)
    assert made.private
    assert Path(made.cwd).parent == desk.user / "homes"
    assert resolve_specs(other.load(), other.paths)["s"].cwd == made.cwd
    assert spec(desk, args=["other"]).cwd != made.cwd


def test_servers_of_two_projects_share_no_directory(desk: Desk, tmp_path: Path) -> None:
    places: set[str] = set()
    for name in ("one", "two"):
        project = Desk(tmp_path / name, desk.user)
        project.write_project("servers: {s: {command: sh}}\n")
        project.trust_project()
        places.add(resolve_specs(project.load(), project.paths)["s"].cwd)
    assert len(places) == 2


def test_a_private_directory_is_made_for_its_user_alone_and_kept(tmp_path: Path) -> None:
    home = tmp_path / "homes" / "s-0123"
    make_home(home)
    (home / "notes").write_text("kept")
    (home / "package.json").write_text("mine")
    make_home(home)
    assert (home.stat().st_mode & 0o777, home.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    assert ((home / "notes").read_text(), (home / "package.json").read_text()) == ("kept", "mine")
    assert {path.name for path in home.iterdir()} == {"notes", *BARRIERS}


# ---------------------------------------------------------------- words


def test_the_workspace_is_data_in_arguments_and_environment(desk: Desk) -> None:
    made = spec(desk, command="npx", args=["${workspace}/data"], env={"W": "${workspace}"})
    assert (made.args, made.env["W"]) == ((f"{desk.cwd}/data",), str(desk.cwd))
    assert made.problem == ""
    assert made.private


def test_the_workspace_is_no_secret_and_no_secret_takes_its_place(desk: Desk) -> None:
    desk.write_user("workspace: taken-by-a-secret\n", "secrets.yaml")
    assert spec(desk, args=["${workspace}", "${workspace:-/else}"]).args == (str(desk.cwd), str(desk.cwd))
    desk.environment = {"workspace": str(desk.cwd)}
    (desk.user / "secrets.yaml").unlink()
    assert desk.load().secrets.redact(f"see {desk.cwd}") == f"see {desk.cwd}"


@pytest.mark.parametrize("command", ["./server", "bin/server", "../server", "${workspace}/server"])
@pytest.mark.parametrize("cwd", ["", ".", "${workspace}"])
def test_a_program_of_the_user_is_not_sought_where_the_client_stands(desk: Desk, command: str, cwd: str) -> None:
    write(desk.cwd / "server", "#!/bin/sh\n").chmod(0o755)
    made = spec(desk, command=command, cwd=cwd, trusted=True)
    assert made.problem.startswith("servers.s.command: ")
    assert "full" in made.problem


def test_a_directory_that_the_user_wrote_out_is_where_the_server_starts(desk: Desk, home: Path) -> None:
    assert (spec(desk, cwd=str(desk.cwd)).cwd, spec(desk, cwd=str(desk.cwd)).problem) == (str(desk.cwd), "")
    assert spec(desk, cwd="~/x").cwd == str(home / "x")


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ("python3", ["-m", "x"], True),
        ("/usr/bin/python3.12", ["-Im", "x"], True),
        ("python", ["-u", "-c", "1"], True),
        ("uv", ["run", "-m", "x"], True),
        ("uvx", ["--from", "x", "python", "-m", "x"], True),
        ("env", ["A=1", "python", "-mx"], True),
        ("python", ["server.py", "--mode", "x"], False),
        ("bash", ["-c", "python server.py"], False),
        ("node", ["-m"], False),
    ],
)
def test_a_python_that_would_look_for_modules_where_it_starts_is_told_not_to(
    desk: Desk, command: str, args: list[str], expected: bool
) -> None:
    assert runs_modules(command, args) is expected
    assert ("PYTHONSAFEPATH" in spec(desk, command=command, args=args).env) is expected
    assert "PYTHONSAFEPATH" not in spec(desk, command=command, args=args, cwd="/").env
    assert spec(desk, command=command, args=args, env={"PYTHONSAFEPATH": ""}).env["PYTHONSAFEPATH"] == ""


# ---------------------------------------------------------------- in the workspace

HERE = ["${workspace}", ".", "${workspace}/sub", "sub"]


@pytest.mark.parametrize("cwd", HERE)
def test_in_the_workspace_a_server_starts_only_once_that_is_trusted_for_it(desk: Desk, cwd: str) -> None:
    (desk.cwd / "sub").mkdir()
    assert "is not trusted for this server: look at it, then run 'onetool trust'" in spec(desk, cwd=cwd).problem
    assert spec(desk, cwd=cwd, trusted=True).problem == ""
    trust_here(desk)
    made = spec(desk, cwd=cwd)
    assert (made.problem, made.private) == ("", False)
    assert made.cwd in (str(desk.cwd), str(desk.cwd / "sub"))


def test_trust_is_for_one_directory_one_server_and_what_was_written_of_it(desk: Desk, tmp_path: Path) -> None:
    spec(desk, cwd=".")
    trust_here(desk)
    assert "trusted for other settings" in spec(desk, cwd=".", args=["x"]).problem
    assert "trusted for other settings" in spec(desk, cwd=".", env={"NODE_OPTIONS": "--require ./x.js"}).problem
    desk.write_user("servers: {other: {command: sh, cwd: .}}\n")
    assert resolve_specs(desk.load(), desk.paths)["other"].problem
    elsewhere = Desk(tmp_path / "elsewhere", desk.user)
    elsewhere.cwd.mkdir()
    assert spec(elsewhere, cwd=".").problem
    assert spec(desk, cwd=".").problem == ""
    assert desk.trust.untrust(desk.project)
    assert spec(desk, cwd=".").problem


def test_a_project_that_writes_its_own_path_needs_the_same_trust(desk: Desk) -> None:
    desk.write_project(json.dumps({"servers": {"s": {"command": "sh", "cwd": str(desk.cwd)}}}))
    desk.trust_project()
    assert "is not trusted for this server" in resolve_specs(desk.load(), desk.paths)["s"].problem
    trust_here(desk)
    assert resolve_specs(desk.load(), desk.paths)["s"].problem == ""


FILES = [".npmrc", "package.json", "pyproject.toml", "uv.toml", ".python-version", ".envrc", ".yarnrc.yml", ".env"]


@pytest.mark.parametrize("name", FILES)
def test_a_launchers_file_that_appears_changes_or_goes_ends_the_trust(desk: Desk, name: str) -> None:
    spec(desk, cwd="sub")
    (desk.cwd / "sub").mkdir()
    trust_here(desk)
    for file in (desk.cwd / "sub" / name, desk.cwd / name):
        file.write_text("one")
        assert f"has changed since it was trusted ({file} was added)" in spec(desk, cwd="sub").problem
        trust_here(desk)
        file.write_text("two")
        assert f"{file} was changed" in spec(desk, cwd="sub").problem
        file.unlink()
        assert f"{file} was removed" in spec(desk, cwd="sub").problem
        trust_here(desk)
    write(desk.cwd / "notes.md", "x")
    assert spec(desk, cwd="sub").problem == ""


def test_modules_beside_count_for_a_python_that_runs_a_module(desk: Desk) -> None:
    module: dict[str, Any] = {"command": sys.executable, "args": ["-m", "tiny"], "cwd": "."}
    spec(desk, **module)
    trust_here(desk)
    (desk.cwd / "asyncio.py").write_text("")
    assert "asyncio.py was added" in spec(desk, **module).problem
    spec(desk, cwd=".")
    trust_here(desk)
    (desk.cwd / "json.py").write_text("")
    assert spec(desk, cwd=".").problem == ""


@pytest.mark.parametrize("change", [".npmrc", "node_modules/x/index.js", ".venv/bin/python"])
@pytest.mark.anyio
async def test_a_change_since_the_settings_were_read_is_found_when_the_server_starts(desk: Desk, change: str) -> None:
    write(desk.cwd / "node_modules" / "x" / "index.js", "1")
    fake: dict[str, Any] = {"command": sys.executable, "args": [str(FAKE)], "cwd": "."}
    spec(desk, **fake)
    trust_here(desk)
    made = spec(desk, **fake)
    async with door_to(made) as door:
        assert await door.call("echo", text="hello") == "hello"
    write(desk.cwd / change, "another text")
    async with door_to(made) as door:
        with pytest.raises(Exception, match="has changed since it was trusted"):
            await door.call("echo", text="hello")


def test_compiled_modules_end_no_trust_and_are_not_what_runs(desk: Desk) -> None:
    write(desk.cwd / ".venv" / "lib" / "x.py", "")
    spec(desk, cwd=".")
    trust_here(desk)
    write(desk.cwd / ".venv" / "lib" / "__pycache__" / "x.pyc", "")
    made = spec(desk, cwd=".")
    assert made.seal is not None
    assert made.seal.changes() == []
    assert Path(made.env["PYTHONPYCACHEPREFIX"]).is_relative_to(desk.user / "homes")


def test_older_records_of_trust_are_read_and_kept(desk: Desk) -> None:
    desk.write_project("aliases: {ls: file.list}\n")
    desk.trust_project()
    record = json.loads((desk.user / "trust.json").read_text())
    del record["workspaces"]
    write(desk.user / "trust.json", json.dumps(record))
    spec(desk, cwd=".")
    trust_here(desk)
    assert desk.load().project_state == "trusted"
    assert list(Trust(desk.user).list_workspaces()) == [desk.cwd]


def test_a_file_too_large_to_be_looked_at_is_not_covered(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ot.config.workspace_trust.MAX_FILE_BYTES", 3)
    write(desk.cwd / "package.json", "large")
    spec(desk, cwd=".")
    trust_here(desk)
    assert "package.json was changed" in spec(desk, cwd=".").problem


# ---------------------------------------------------------------- scripts of the workspace


@pytest.mark.parametrize("command", ["python3", "node", "bash"])
def test_a_script_of_the_workspace_runs_only_where_that_is_trusted(desk: Desk, command: str) -> None:
    script: dict[str, Any] = {"command": command, "args": ["${workspace}/server.x"]}
    assert (
        "is a program of the workspace, which must be trusted: add 'cwd: ${workspace}'" in spec(desk, **script).problem
    )
    assert "is not trusted for this server" in spec(desk, **script, cwd="${workspace}").problem
    write(desk.cwd / "server.x", "1")
    trust_here(desk)
    assert spec(desk, **script, cwd="${workspace}").problem == ""
    write(desk.cwd / "server.x", "2")
    assert "server.x was changed" in spec(desk, **script, cwd="${workspace}").problem


@pytest.mark.parametrize("args", [["-y", "server-files", "${workspace}"], ["/srv/server.js", "${workspace}/data.db"]])
def test_an_argument_that_is_mere_data_needs_no_trust(desk: Desk, args: list[str]) -> None:
    command = "npx" if args[0] == "-y" else "node"
    assert spec(desk, command=command, args=args).problem == ""
