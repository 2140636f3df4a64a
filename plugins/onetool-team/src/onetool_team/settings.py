"""The settings of a server that a team shares: who may use it, how much, and what its replicas share."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from ot.config.setting_types import Seconds, Settings, Texts, WebAddress, fit

TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
TOKEN_HASH = re.compile(r"sha256:[0-9a-f]{64}")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

type TokenScope = Literal["run", "admin"]
"""What a token may allow."""

TokenName = Annotated[
    str, fit(TOKEN_NAME.fullmatch, "'{}' cannot be the name of a token: use letters, digits, '_', '.', '@' and '-'")
]
TokenHash = Annotated[str, fit(TOKEN_HASH.fullmatch, "it is not what onetool token prints: sha256: and 64 digits")]


class StaticToken(Settings):
    """One person or program that is known by a token."""

    hash: TokenHash = Field(description="What onetool token prints: the token itself is written nowhere")
    scopes: Annotated[tuple[TokenScope, ...], Field(strict=False, min_length=1)] = Field(
        default=("run",), description="What it may do: run; admin, which includes run"
    )
    groups: Texts = Field(default=(), description="The groups of policy.groups it belongs to")


class Introspection(Settings):
    """The authorization server is asked about each token."""

    url: WebAddress = Field(description="Its introspection endpoint")
    client_id: str = Field(description="As whom it is asked")
    client_secret: str = Field(default="", repr=False, description="The secret of that client: write ${NAME}")


class AccessTokens(Settings):
    """Whose access tokens are accepted."""

    issuer: WebAddress = Field(description="The authorization server, exactly as its tokens name it")
    audience: str = Field(default="", description="Whom tokens must be for; empty means public_url with /mcp")
    jwks_url: WebAddress = Field(default="", description="Its keys; empty means what its metadata says")
    introspection: Introspection | None = Field(default=None, description="For tokens that are not JWTs")
    leeway_seconds: float = Field(default=60.0, ge=0, le=300, description="How far clocks may differ")
    groups_claim: str = Field(default="groups", description="The claim that names the groups of policy.groups")

    @field_validator("issuer")
    @classmethod
    def _unforgeable(cls, issuer: str) -> str:
        # Whoever can change what a plain connection carries could bring keys of their own.
        parts = urlsplit(issuer)
        if parts.query or parts.fragment or (parts.scheme != "https" and parts.hostname not in LOOPBACK):
            raise ValueError(f"'{issuer[:100]}' is not an issuer: write https:// and no query")
        return issuer


class People(Settings):
    """Where everyone works."""

    each: str = Field(
        default="", description="A directory; everyone has one of their own below it. Empty: one that does not last"
    )
    shared: Texts = Field(default=(), description="Directories that everyone may read and nobody may write")
    idle_seconds: Seconds = Field(default=1800.0, description="How long an unused workspace stays open")
    most: int = Field(default=200, ge=1, le=10_000, description="Workspaces that are open at a time")
    disk_bytes: int = Field(
        default=1 << 30, ge=1 << 20, description="How much the directory of one user may hold before writes are refused"
    )


class GroupQuotas(Settings):
    """What members of a group may use, where that is not what everybody may."""

    in_flight: int | None = Field(default=None, ge=1, le=1000, description="Runs at a time")
    waiting: int | None = Field(default=None, ge=0, le=10_000, description="Runs that wait for their turn")
    runs_per_minute: int | None = Field(default=None, ge=1, le=1_000_000, description="Runs that begin within a minute")
    parked: int | None = Field(default=None, ge=0, le=1000, description="Runs that wait for an answer")


class Quotas(Settings):
    """How much one principal may use."""

    in_flight: int = Field(default=8, ge=1, le=1000, description="Runs at a time")
    waiting: int = Field(default=32, ge=0, le=10_000, description="Runs that wait for their turn")
    runs_per_minute: int = Field(default=600, ge=1, le=1_000_000, description="Runs that begin within a minute")
    parked: int = Field(default=8, ge=0, le=1000, description="Runs that wait for an answer")
    queue_seconds: Seconds = Field(default=30.0, description="How long a run waits for its turn")
    without_redis: Literal["open", "closed"] = Field(
        default="open",
        description="While state.redis is unreachable, open: each replica counts by itself; closed: no run begins",
    )
    groups: Mapping[str, GroupQuotas] = Field(
        default_factory=dict, description="What members of a group may use, by the group's name"
    )

    def of(self, groups: Collection[str]) -> Quotas:
        """Return what a member of *groups* may use: of each figure the largest that one of them has."""
        found = [self.groups[name] for name in groups if name in self.groups]
        given = {name: [value for one in found if (value := getattr(one, name)) is not None] for name in FIGURES}
        largest = {name: max(values) for name, values in given.items() if values}
        return self.model_copy(update=largest) if largest else self


FIGURES = tuple(GroupQuotas.model_fields)


class Http(Settings):
    """The server over HTTP."""

    public_url: WebAddress = Field(default="", description="The address that clients use, without /mcp")
    hosts: Texts = Field(default=(), description="Further host names that requests may be for")
    origins: Texts = Field(default=(), description="Origins of web pages that may call")
    tokens: Mapping[TokenName, StaticToken] = Field(
        default_factory=dict, description="Who is known by a token, by name"
    )
    tokens_file: str = Field(
        default="",
        description="A file with further tokens, one on a line, for hundreds or thousands; a relative path is below "
        "`~/.onetool`. Empty: none",
    )
    oauth: AccessTokens | None = Field(
        default=None,
        description="Whose access tokens are accepted",
        examples=[{"issuer": "https://login.example.com"}],
    )
    workspaces: People = Field(default_factory=People, description="Where everyone's programs work")
    quotas: Quotas = Field(default_factory=Quotas, description="How much one principal may use")
    body_bytes: int = Field(default=4 << 20, ge=1 << 10, le=64 << 20, description="Size of a request's body")
    connections: int = Field(default=1000, ge=1, le=100_000, description="Connections at a time")
    connections_per_address: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Connections at a time from one address; 0: a quarter of connections from a public address, "
        "and no bound from a private one, which may be a balancer's",
    )
    request_seconds: Seconds = Field(default=15.0, description="How long a request may take to arrive")
    notice_seconds: float = Field(
        default=0.0,
        ge=0,
        le=300,
        allow_inf_nan=False,
        description="How long runs still begin after SIGTERM, while /readyz says no: for balancers to notice",
    )

    @property
    def names_people(self) -> bool:
        """Whether somebody is configured who may use the server: a team."""
        return bool(self.tokens or self.tokens_file or self.oauth)


class SharedStore(Settings):
    """What replicas share."""

    redis: str = Field(
        default="", repr=False, description="The address of Redis or Valkey; ${NAME} inserts a secret. Empty: none"
    )
    postgres: str = Field(
        default="",
        repr=False,
        description="The address of PostgreSQL, for what must not be lost; ${NAME} inserts a secret. Empty: none",
    )
    prefix: str = Field(default="onetool", description="What keys in Redis begin with, and the schema in PostgreSQL")
    keys: Texts = Field(
        default=(),
        repr=False,
        description="Secrets of 32 characters or more that seal what replicas share, the newest first: write ${NAME}",
    )


class Telemetry(Settings):
    """What operators see."""

    metrics: str = Field(default="", description="Where Prometheus reads, as HOST:PORT; empty: nowhere")
    traces: WebAddress = Field(
        default="",
        description="Where spans are sent, as OTLP over HTTP; empty: as the OTEL_EXPORTER_OTLP_* variables say",
    )
    sample: float = Field(default=1.0, ge=0, le=1, description="The part of traces that is sent, unless a caller says")
    audit: str = Field(default="", description="The file that effects are written to; -: standard output; empty: none")
    audit_arguments: Texts = Field(
        default=(), description="Patterns of tools whose arguments are written there, without secrets; else a hash is"
    )
    audit_required: bool = Field(
        default=False, description="Refuse calls that may change something while the audit log cannot be written"
    )
