"""A whole team's server on loopback: replicas, Redis, PostgreSQL, an object store, an issuer and a balancer."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from free_ports import free_port
from http_server import ACCEPT, MODERN, HttpServer
from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.signing_keys import SigningKeys
from onetool_team.auth.static_tokens import new_token, token_hash
from output.s3_process import KEY, SECRET, S3Process, running_s3
from pace import PATIENCE
from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess, running_redis
from team.auth.forged_tokens import forge_of
from team.background.worker_process import WorkerProcess
from team.balancer import Balancer, balancing

CONFIG = """
engines: {{use: portable}}
limits: {{drain_seconds: 10}}
policy: {{ask: ["ot.version"], allow: ["counter.*"]}}
output: {{max_inline_size: 2000, store: {{url: "s3://results/{prefix}", endpoint: "{s3}", region: eu-test-1,
  access_key_id: {key}, secret_access_key: {secret}}}}}
state: {{redis: "{redis}", postgres: "{postgres}", prefix: "{prefix}", keys: ["{state_key}"]}}
http:
  public_url: "{public}"
  workspaces: {{each: "{people}"}}
  quotas: {{in_flight: 1000, waiting: 10000, runs_per_minute: 1000000}}
  tokens: {{ann: {{hash: "{ann}"}}, bob: {{hash: "{bob}", scopes: [run, admin]}}}}
  oauth: {{issuer: "{issuer}"}}
  notice_seconds: 0.5
{more}
"""


@dataclass
class WholeTeam:
    """Everything that runs, and how to reach it as anybody."""

    redis: RedisProcess
    postgres: PostgresServer
    s3: S3Process
    issuer: LoopbackAuthorizationServer
    root: Path
    port: int
    tokens: dict[str, str]
    replicas: list[HttpServer]
    more: str = ""
    """Further settings."""

    @property
    def public(self) -> str:
        """The address that clients use."""
        return f"http://127.0.0.1:{self.port}"

    def start_replica(self, name: str, address: str = "0") -> HttpServer:
        """Start one more replica, or one again."""
        root = self.root / name
        root.mkdir(exist_ok=True)
        return HttpServer.start(root, self.config(), address=address)

    def start_worker(self, name: str) -> WorkerProcess:
        """Start a worker."""
        root = self.root / name
        root.mkdir(exist_ok=True)
        return WorkerProcess.start(root, self.config())

    def config(self) -> str:
        """Return the configuration of replicas and workers."""
        values = {name: token_hash(token) for name, token in self.tokens.items()}
        return CONFIG.format(
            prefix=self.root.name, s3=self.s3.endpoint, key=KEY, secret=SECRET, redis=self.redis.url,
            postgres=self.postgres.address,
            state_key=self.tokens["ann"], public=self.public, people=self.root / "people", issuer=self.issuer.origin,
            more=self.more, **values,
        )  # fmt: skip

    @asynccontextmanager
    async def balancing(self) -> AsyncGenerator[Balancer]:
        """Yield the balancer, once both replicas are ready."""
        async with balancing([replica.port for replica in self.replicas], self.port) as balancer:
            yield balancer

    def login(self, name: str) -> str:
        """Return an access token of *name*, as the authorization server issues it."""
        return forge_of(self.issuer).token(sub=name, aud=f"{self.public}/mcp")

    def client(self, token: str, era: str = "auto", url: str = "", **options: Any) -> Client[StreamableHttpTransport]:
        """Return a client whose every request is a connection of its own, so that any replica may answer it."""
        headers = {"Authorization": f"Bearer {token}", "Connection": "close"}
        transport = StreamableHttpTransport(url or f"{self.public}/mcp", headers=headers)
        return Client(transport, mode=era, **options)  # pyright: ignore[reportArgumentType] - one of ConnectMode's values

    def raw(self, token: str) -> httpx2.AsyncClient:
        """Return a client for raw requests, each on a connection of its own."""
        headers = {"authorization": f"Bearer {token}", "accept": ACCEPT, "connection": "close"}
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "run"}
        return httpx2.AsyncClient(base_url=self.public, headers=headers, timeout=PATIENCE)


@contextmanager
def whole_team(root: Path, redis_in: str = "", redis_at: str = "", more: str = "") -> Generator[WholeTeam]:
    """Yield two replicas and everything that they need; Redis may be in a network namespace, at an address.

    *more* is added to the configuration.
    """
    with ExitStack() as stack:
        host = redis_at or "127.0.0.1"
        redis = stack.enter_context(running_redis(tcp=bool(redis_at), within=redis_in, host=host))
        postgres = stack.enter_context(postgres_server("fsync=on"))
        s3 = stack.enter_context(running_s3())
        issuer = stack.enter_context(LoopbackAuthorizationServer())
        issuer.issuing.signing = SigningKeys()
        (root / "people").mkdir()
        tokens = {name: new_token() for name in ("ann", "bob")}
        team = WholeTeam(redis, postgres, s3, issuer, root, free_port(), tokens, [], more)
        for name in ("one", "other"):
            team.replicas.append(team.start_replica(name))
            stack.callback(lambda name=name: _close(team, name))
        yield team


def _close(team: WholeTeam, name: str) -> None:
    for replica in team.replicas:
        if replica.place.cwd.parent.name == name:
            replica.close()


def canary() -> str:
    """Return a text that nobody else has."""
    return f"canary-{secrets.token_hex(8)}"
