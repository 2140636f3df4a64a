"""onetool add with an OpenAPI document or a preset."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
import yaml

from cli.command import OneTool
from ot.cli.adding.presets import presets
from ot.config.models import Server
from proxied.openapi.api_desk import DESK, SHOP

BASE = ("--base", "http://127.0.0.1:9/v1")


class Quiet(SimpleHTTPRequestHandler):
    """Gives files, and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Be silent."""


@contextmanager
def files_served(directory: Path) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def servers_of(onetool: OneTool) -> dict[str, Any]:
    return yaml.safe_load((onetool.user / "onetool.yaml").read_text())["servers"]


def test_a_document_becomes_a_pack_under_its_own_name_with_its_own_address(onetool: OneTool):
    ended = onetool("add", f"openapi:{SHOP}")
    assert ended.code == 0
    assert "8 tools in " in ended.out
    assert "It wants credentials, in one of these forms: --header 'X-Shop-Key: ...'" in ended.out
    assert servers_of(onetool) == {"shop": {"openapi": str(SHOP), "url": "http://shop.invalid/v1"}}
    assert "shop.addPet(" in onetool("search", "add a pet").out


def test_a_key_goes_to_the_secrets_and_a_name_and_an_address_may_be_given(onetool: OneTool):
    ended = onetool("add", "--json", *BASE, "--header", "X-Shop-Key: k-4711-secret", "pets", f"openapi:{SHOP}")
    told = json.loads(ended.out)
    assert (told["name"], told["tools"], told["secrets"]) == ("pets", 8, ["PETS_X_SHOP_KEY"])
    entry = servers_of(onetool)["pets"]
    assert entry["headers"] == {"X-Shop-Key": "${PETS_X_SHOP_KEY}"}
    assert entry["url"] == "http://127.0.0.1:9/v1"
    (row,) = json.loads(onetool("servers", "--json").out)
    assert (row["transport"], row["endpoint"], row["tools"]) == ("openapi", "http://127.0.0.1:9/v1", 8)


def test_a_file_with_a_name_that_all_have_is_called_by_its_title(onetool: OneTool):
    copy(DESK, onetool.cwd / "openapi.json")
    assert onetool("add", "--no-connect", *BASE, "openapi:openapi.json").code == 0
    assert list(servers_of(onetool)) == ["help_desk"]


def test_a_document_at_an_address_is_kept(onetool: OneTool):
    with files_served(DESK.parent) as url:
        ended = onetool("add", "desk", f"openapi:{url}/{DESK.name}")
    assert "4 tools in " in ended.out
    assert servers_of(onetool)["desk"] == {"openapi": f"{url}/{DESK.name}", "url": url}
    reply = onetool("run", "desk.get_health()")
    assert "GET /health: no connection to" in reply.err  # the document is there, the API is not


class Terminal(io.StringIO):
    """Standard input of somebody who types."""

    def isatty(self) -> bool:
        return True


def document_naming(address: str, file: Path) -> Path:
    """Return *file*, now a document that says that its API is at *address*."""
    file.write_text(json.dumps(json.loads(DESK.read_text()) | {"servers": [{"url": address}]}))
    return file


def test_calls_go_to_another_origin_than_the_documents_only_if_the_user_says_so(onetool: OneTool):
    document_naming("http://127.0.0.1:9/api?key=1", onetool.cwd / "api.json")
    with files_served(onetool.cwd) as url:
        add = ("add", "--no-connect", "--header", "Authorization: Bearer k-4711", "desk", f"openapi:{url}/api.json")
        refused = onetool(*add)
        assert refused.code == 1 and not (onetool.user / "onetool.yaml").exists()
        assert f"the API is at http://127.0.0.1:9/api, but the document is at {url}." in refused.err
        assert "add --base http://127.0.0.1:9/api" in refused.err
        with onetool.monkeypatch.context() as patch:
            patch.setattr("io.StringIO", Terminal)
            declined = onetool(*add, stdin="n\n")
            assert declined.code == 1 and not (onetool.user / "onetool.yaml").exists()
            agreed = onetool(*add, stdin="y\n")
    assert "Send calls and their headers there?" in agreed.out + agreed.err
    assert "Calls go to http://127.0.0.1:9/api." in agreed.out
    assert servers_of(onetool)["desk"]["url"] == "http://127.0.0.1:9/api?key=1"


def test_a_document_in_a_file_sends_calls_to_no_internal_address_unless_the_user_says_so(onetool: OneTool):
    document = document_naming("http://127.0.0.1:9/api", onetool.cwd / "desk.json")
    refused = onetool("add", "--no-connect", f"openapi:{document}")
    assert (refused.code, "but 127.0.0.1 has the internal address 127.0.0.1" in refused.err) == (1, True)
    written = onetool("add", "--no-connect", "--base", "http://127.0.0.1:9/api", f"openapi:{document}")
    assert (written.code, "Calls go to http://127.0.0.1:9/api." in written.out) == (0, True)
    (onetool.user / "onetool.yaml").write_text("security: {internal_hosts: ['127.0.0.1:9']}\n")
    assert onetool("add", "--no-connect", f"openapi:{document}").code == 0


def test_a_document_whose_address_looks_like_another_one_is_not_believed(onetool: OneTool):
    document = document_naming("https://api.good.example@evil.example/", onetool.cwd / "desk.json")
    ended = onetool("add", "--no-connect", f"openapi:{document}")
    assert (ended.code, "pass it with --base ADDRESS" in ended.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("{", (), "the document is malformed JSON"),
        ("swagger: '2.0'", (), "OpenAPI 3.0 or 3.1 is required: convert it first"),
        (DESK.read_text(), (), "pass it with --base ADDRESS"),
    ],
)
def test_a_document_that_cannot_be_used_leaves_nothing_behind(
    onetool: OneTool, text: str, options: tuple[str, ...], words: str
):
    (onetool.cwd / "api.json").write_text(text)
    ended = onetool("add", *options, "openapi:api.json")
    assert ended.code == 1
    assert words in ended.err
    assert not (onetool.user / "onetool.yaml").exists()


def test_an_operation_that_cannot_be_read_is_named_by_add_and_by_check(onetool: OneTool):
    document = json.loads(DESK.read_text())
    document["paths"]["/odd"] = {"get": {"operationId": "odd", "parameters": [{"$ref": "#/components/gone"}]}}
    (onetool.cwd / "api.json").write_text(json.dumps(document))
    why = "the document is malformed at GET /odd: it refers to #/components/gone, which does not exist"
    line = f"odd is left out: {why}"
    added = onetool("add", *BASE, "desk", "openapi:api.json")
    assert added.code == 0
    assert "4 tools in " in added.out and line in added.out
    checked = onetool("check")
    assert checked.code == 0
    assert line in checked.out


def test_a_document_that_is_not_there_is_named(onetool: OneTool):
    ended = onetool("add", "openapi:gone.yaml")
    assert (ended.code, f"there is no file {onetool.cwd}/gone.yaml" in ended.err) == (1, True)


def test_base_is_for_documents_alone(onetool: OneTool):
    assert "--base is for openapi:FILE" in onetool("add", *BASE, "uvx:mcp-server-time").err


def test_a_projects_document_must_be_among_the_files_that_are_trusted(onetool: OneTool):
    copy(SHOP, onetool.cwd / "api.yaml")
    refused = onetool("add", "--project", *BASE, "openapi:api.yaml")
    assert refused.code != 0
    assert "must be an address or a file inside the project's .onetool directory" in refused.err
    onetool.project.mkdir(exist_ok=True)
    copy(SHOP, onetool.project / "api.yaml")
    assert onetool("add", "--project", *BASE, "shop", "openapi:.onetool/api.yaml").code == 0
    written = yaml.safe_load((onetool.project / "onetool.yaml").read_text())
    assert written["servers"]["shop"]["openapi"] == "api.yaml"
    assert onetool("trust", "--yes").code == 0
    assert "shop.listPets(" in onetool("run", "ot.help('shop')").out
    (onetool.project / "api.yaml").write_text(SHOP.read_text().replace("/old/pets", "/new/pets"))
    assert "is not defined" in onetool("run", "shop.listPets()").err


# ---------------------------------------------------------------- presets


def test_every_preset_is_a_server_that_the_settings_take():
    for name, found in presets().items():
        Server.model_validate(found["entry"])
        assert found["page"].startswith("https://"), name
        assert found["auth"] in ("oauth", "client", "token", "none"), name
        assert ("auth" in found["entry"]) == (found["auth"] in ("oauth", "client")), name
        url = found["entry"].get("url", "https://")
        assert url.startswith("https://"), name


def test_presets_are_listed_for_people_and_programs(onetool: OneTool):
    assert "preset:github      a token of yours" in onetool("add", "--list").out
    rows = {row["name"]: row for row in json.loads(onetool("add", "--list", "--json").out)}
    assert rows["notion"]["entry"]["url"] == "https://mcp.notion.com/mcp"
    assert rows["notion"]["scopes"] == []
    assert len(rows) >= 8


def test_a_preset_with_a_login_says_how_to_log_in(onetool: OneTool):
    ended = onetool("add", "preset:notion")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "Next: onetool auth login notion"
    assert servers_of(onetool)["notion"] == {"url": "https://mcp.notion.com/mcp", "auth": "oauth"}


def test_a_preset_with_a_token_says_which_secret_it_needs(onetool: OneTool):
    ended = onetool("add", "--no-connect", "hub", "preset:github")
    assert "It needs the secret GITHUB_TOKEN: https://github.com/settings/personal-access-tokens/new" in ended.out
    assert "onetool allow 'hub.get_*' 'hub.list_*' 'hub.search_*'" in ended.out
    assert servers_of(onetool)["hub"]["headers"] == {"Authorization": "Bearer ${GITHUB_TOKEN}"}


def test_a_preset_that_is_not_there_is_answered_with_those_that_are(onetool: OneTool):
    ended = onetool("add", "preset:githup")
    assert ended.code == 3
    assert "there is no preset 'githup'. Presets: atlassian, context7, github" in ended.err
