"""Whatever a client's file looks like: after init --from, connect --take-out and disconnect, nothing is lost.

Each file in client_files holds the files of a client and what has to become of its servers: ``works`` says whether a
server can work here with what is there, ``taken_out`` whether it has to leave the client; without that key, it may.
"""

from __future__ import annotations

import base64
import json
import keyword
import re
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from cli import small_server
from cli.command import Ended, OneTool
from config.desk import write
from ot.build import names_in_use
from ot.cli.connecting import client_cost
from ot.cli.connecting.client_cost import ContextCost
from ot.cli.diagnosis import starts
from ot.config.clients.client_reading import read_json
from ot.config.clients.known_clients import CLIENTS
from ot.config.clients.take_over import surroundings
from ot.proxied.spec import ServerSpec

CASES = sorted((Path(__file__).parent / "client_files").glob("*.yaml"))
TOKEN = "tok-secret-123456"
SCRIPTS = ("SERVER", "SERVER_NEEDS_ENV", "EXITS", "HANGS", "EMPTY")
WHY = {
    "input": "needs", "secret": "needs", "unreachable": "reach|connect", "command": "no program|not found|command",
    "exits": "ended|exit", "hangs": "within", "login": "login|401", "disabled": "disabled",
    "args": "args are not a list",
}  # fmt: skip


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """What stands for the marks in the files: small real servers, as scripts and over HTTP."""
    place = tmp_path_factory.mktemp("servers")
    scripts = {f"@{name}@": place / f"{name.removeprefix('SERVER_').lower()}.py" for name in SCRIPTS}
    for script in scripts.values():
        script.symlink_to(small_server.FILE)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/bearer" and self.headers["authorization"] != f"Bearer {TOKEN}":
                self._reply(401, None)
            else:
                reply = small_server.answer(message)
                self._reply(200 if reply else 202, reply)

        def do_GET(self) -> None:
            self._reply(405, None)

        def do_DELETE(self) -> None:
            self._reply(405, None)

        def _reply(self, status: int, reply: Any) -> None:
            data = json.dumps(reply).encode() if reply else b""
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        dead = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        dead.server_close()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        yield {
            "@PYTHON@": sys.executable, **{mark: str(script) for mark, script in scripts.items()},
            "@URL@": f"{address}/mcp", "@URL_BEARER@": f"{address}/bearer",
            "@DEAD_URL@": f"http://127.0.0.1:{dead.server_port}/mcp",
        }  # fmt: skip
        server.shutdown()


@dataclass(frozen=True)
class Case:
    """The files of a client, as they lie on a machine."""

    said: Mapping[str, Any]
    onetool: OneTool
    marks: Mapping[str, str]

    @property
    def clients(self) -> list[str]:
        return [self.said["client"], *self.said.get("then", ())]

    @property
    def expected(self) -> list[dict[str, Any]]:
        return self.filled(self.said["expect"].get("servers", []))

    def filled(self, value: Any) -> Any:
        text = json.dumps(value, ensure_ascii=False)
        for mark, there in self.marks.items():
            text = text.replace(mark, there)
        return json.loads(text)

    def file_of(self, client: str) -> Path:
        self.onetool.cwd.mkdir(exist_ok=True)
        return CLIENTS[client].own_file(surroundings(self.onetool.cwd)).file

    def path(self, base: Path, path: str) -> Path:
        return self.file_of(self.said["client"]) if path == "default" else base / path

    def write_files(self) -> dict[Path, bytes]:
        written: dict[Path, bytes] = {}
        for each in self.said["files"]:
            data = base64.b64decode(each["base64"]) if "base64" in each else each["text"].encode()
            for mark, there in self.marks.items():
                data = data.replace(mark.encode(), there.encode())
            base = self.onetool.home if each["where"] == "home" else self.onetool.cwd
            file = self.path(base, each["path"])
            write(file, data)
            written[file] = data
        return written

    def listed(self, client: str, server: Mapping[str, Any]) -> dict[str, Any]:
        """Return the list of a client's file in which *server* is, or was."""
        file = self.path(self.onetool.cwd, server["in_file"]) if "in_file" in server else self.file_of(client)
        data = file.read_bytes()
        content = tomllib.loads(data.decode()) if file.suffix == ".toml" else read_json(data)
        key = CLIENTS[client].own_file(surroundings(self.onetool.cwd)).key
        if "only_in" in server and server.get("in_file", "default") == "default":
            content = content["projects"][server["only_in"]]
        return content.get(key, {})


@pytest.mark.parametrize("file", CASES, ids=[case.stem for case in CASES])
def test_every_server_of_a_client_works_where_it_worked_before(
    file: Path, onetool: OneTool, marks: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_cost, "own_cost", lambda paths: ContextCost())
    monkeypatch.setattr(starts, "with_patience", wait_briefly_for_what_hangs)
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    case = Case(said, onetool, {**marks, "@PROJECT@": str(onetool.cwd)})
    for name, value in said.get("secrets_present", {}).items():
        monkeypatch.setenv(name, value)
    before = case.write_files()
    lists = {number: case_list(case, server) for number, server in enumerate(case.expected)}
    shown = [onetool("init", "--from", client, "--yes", "--no-connect", "--json") for client in case.clients]
    if said["expect"].get("malformed"):
        (problem,) = json.loads(shown[0].out)["problems"]
        assert re.search(r"cannot be understood: .*(line \d+|position \d+|'\w+' is not an object)", problem)
        assert {path: path.read_bytes() for path in before} == before
        assert not (onetool.user / "onetool.yaml").exists()
        return
    names = {
        (server["client"], server["in_client"], server["to"], server["only_in"]): server["name"]
        for ended in shown
        for server in json.loads(ended.out)["servers"]
    }
    shown += [onetool("connect", client, "--take-out", "--yes") for client in case.clients]
    look_after_connect(case, lists, names, shown)
    if "between" in said:
        rewrite(case.path(onetool.home, said["between"]["file"]), case.filled(said["between"]["merge"]))
    shown += [onetool("disconnect", client, "--yes") for client in case.clients]
    assert [ended.err for ended in shown if ended.code not in (0, 3)] == []
    if said["expect"]["after_disconnect"] == "same-bytes":
        assert {path: path.read_bytes() for path in before} == before
    for number, server in enumerate(case.expected):
        now, new = case_list(case, server), said["expect"].get("also_after_disconnect", ())
        assert all(name in now for name in new)
        assert [item for item in now.items() if item[0] not in new] == list(lists[number].items())


def rewrite(file: Path, more: Mapping[str, Any]) -> None:
    """Write *file* as the client itself would, with its own changes."""

    def merged(old: Any, new: Any) -> Any:
        if not isinstance(old, dict) or not isinstance(new, dict):
            return new
        under, over = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        return {**under, **{key: merged(under.get(key), value) for key, value in over.items()}}

    file.write_text(json.dumps(merged(read_json(file.read_bytes()), more), indent=2))


def case_list(case: Case, server: Mapping[str, Any]) -> dict[str, Any]:
    return case.listed(server.get("client", case.said["client"]), server)


def wait_briefly_for_what_hangs(spec: ServerSpec) -> ServerSpec:
    return replace(spec, start_seconds=2) if any("hangs.py" in word for word in spec.args) else spec


def look_after_connect(
    case: Case,
    lists: Mapping[int, dict[str, Any]],
    names: Mapping[tuple[str, str, str, str | None], str],
    shown: list[Ended],
) -> None:
    said = "".join(ended.out + ended.err for ended in shown)
    config = case.onetool.user / "onetool.yaml"
    own = yaml.safe_load(config.read_text()) if config.exists() else {}
    found: dict[str, Any] = own.get("servers", {})
    packs = names_in_use(case.onetool.user)
    for name in found:
        assert name.isidentifier() and not keyword.iskeyword(name)
        assert name not in packs and name not in sys.stdlib_module_names
    tools = {row["name"]: row["tools"] for row in json.loads(case.onetool("list", "--json").out)}
    in_project = "".join(file.read_text() for file in case.onetool.project.rglob("*") if file.is_file())
    taken: list[str] = []
    for number, server in enumerate(case.expected):
        name, client = server["in_client"], server.get("client", case.said["client"])
        left, was = case_list(case, server), lists[number][name]
        is_gone = name not in left
        assert is_gone or left[name] == was
        assert server.get("taken_out", is_gone) == is_gone, said
        for secret in server.get("secret_not_in_yaml", ()):
            assert secret not in json.dumps(own) + said + in_project
        of_repository = server.get("in_file", "default") != "default"
        scope, directory = ("project", None) if of_repository else ("user", server.get("only_in"))
        here = names.get((client, name, scope, directory), "")
        assert here not in server.get("name_must_not_be", ())
        is_looked_at = server.get("only_in", str(case.onetool.cwd)) == str(case.onetool.cwd)
        if not server["works"] and is_looked_at:
            pattern = rf"^{re.escape(name)} stays in .*({WHY[server['why']] if 'why' in server else '.'})"
            assert re.search(pattern, said, re.MULTILINE), said
        if is_gone:
            taken.append(f"{here} of {client}")
            assert tools[here] == server["tools"]
    assert len(set(taken)) == len(taken)
    for wanted in case.said["expect"].get("if_taken_out", ()) if taken else ():
        found_there: Any = read_json(case.path(case.onetool.home, wanted["file"]).read_bytes())
        for key in wanted["key"]:
            found_there = found_there[key]
        assert wanted["contains"] in found_there
