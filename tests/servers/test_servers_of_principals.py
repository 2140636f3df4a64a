"""The same server for several principals: each has one of their own, and nobody approves or learns for another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ot.config.models import Server
from ot.config.paths import Paths
from ot.config.secrets import Secrets
from ot.servers.catalogue_files import CatalogueFiles
from ot.servers.definition_pins import DefinitionPins
from ot.servers.definitions import ServerDefinitions
from ot.servers.pool import ServerPool
from ot.servers.spec import ServerSpec, resolve_spec
from servers.desk import short_backoff

pytestmark = pytest.mark.anyio

READ: dict[str, Any] = {"name": "read", "description": "Read.", "inputSchema": {"type": "object"}}
OTHER = READ | {"description": "Read, and tell others."}
ANN, BOB = "https://idp|ann", "https://idp|bob"


def spec_of(principal: str = "", own: tuple[str, ...] = (), **settings: Any) -> ServerSpec:
    """Return one server as *principal* uses it, whose *own* secrets differ from the operator's."""
    server = Server.model_validate({"command": "run", "env": {"TOKEN": "${TOKEN}"}, **settings})
    secrets = Secrets({"TOKEN": "-".join(["token", *own])})
    paths = Paths(Path("/people") / (principal or "operator"), None, Path("/u"))
    return resolve_spec("desk", server, secrets, paths, principal=principal, own_secrets=own)


def test_each_principal_has_a_process_a_directory_and_an_identity_of_their_own() -> None:
    specs = [spec_of(), spec_of(ANN), spec_of(BOB)]
    assert len({spec.key for spec in specs}) == len({spec.cwd for spec in specs}) == 3
    assert len({spec.identity.written for spec in specs}) == 3


def test_only_a_server_without_login_and_own_secrets_is_known_by_what_the_operators_offers(tmp_path: Path) -> None:
    files = CatalogueFiles(tmp_path)
    files.write(spec_of().identity, ServerDefinitions((READ,)))
    alike, other = spec_of(ANN), spec_of(ANN, own=("TOKEN",))
    assert files.holds(alike.identity) and files.read(alike.identity) == files.read(spec_of().identity)
    assert not files.holds(other.identity) and files.read(other.identity) is None
    login = spec_of(ANN, command="", env={}, url="https://desk.example/mcp", auth="oauth")
    assert login.account and login.account.principal == ANN and not login.identity.common


def test_a_first_use_approves_for_whoever_makes_it_alone(tmp_path: Path) -> None:
    DefinitionPins(tmp_path).observe(spec_of(ANN).identity, "desk", ServerDefinitions((READ,)))
    operators = DefinitionPins(tmp_path)
    assert operators.observe(spec_of().identity, "desk", ServerDefinitions((OTHER,))) == []
    assert DefinitionPins(tmp_path).observe(spec_of(BOB).identity, "desk", ServerDefinitions((OTHER,))) == []


def test_what_the_operator_approved_counts_for_everyone_and_only_the_operator_approves_a_change(
    tmp_path: Path,
) -> None:
    DefinitionPins(tmp_path).observe(spec_of().identity, "desk", ServerDefinitions((READ,)))
    for principal in (ANN, BOB):
        changes = DefinitionPins(tmp_path).observe(spec_of(principal).identity, "desk", ServerDefinitions((OTHER,)))
        assert [change.tool for change in changes] == ["read"]
    pins = DefinitionPins(tmp_path)
    (book,) = [book for book in pins.books() if book.pending_changes()]
    pins.approve(book)
    assert DefinitionPins(tmp_path).observe(spec_of(ANN).identity, "desk", ServerDefinitions((OTHER,))) == []


async def test_a_reload_keeps_the_connections_of_other_principals() -> None:
    mine = spec_of(command="", env={}, url="https://desk.example/mcp", auth="oauth")
    anns = mine.of(ANN)
    pool, holder = ServerPool(backoff=short_backoff), object()
    try:
        pool.hold(holder, [mine.key])
        kept = pool.connection(anns)
        pool.hold(holder, [mine.key])
        assert pool.connection(anns) is kept and not kept.closing
        pool.hold(holder, [replace(mine, call_seconds=1.0).key])
        assert kept.closing
    finally:
        await pool.aclose()
