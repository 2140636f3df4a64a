"""The settings that OneTool knows, as frozen models: an unknown key is an error."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from ot.config.setting_types import (
    AliasName,
    Directory,
    InsidePath,
    PackName,
    ProjectName,
    Seconds,
    ServerName,
    Settings,
    SnippetName,
    StoreAddress,
    Texts,
    ToolName,
    ToolPatterns,
    WebAddress,
)

VERSION = 1
"""The newest ``version:`` of a configuration file that this release reads."""

type PolicyRule = Literal["allow", "ask", "deny"]
"""The lists of the policy."""


class SnippetParam(Settings):
    """One parameter of a snippet."""

    type: Literal["str", "int", "float", "bool"] | None = Field(
        default=None, description="The type of a given value; without it, a value that looks like a number is one"
    )
    required: bool = Field(default=True, description="Whether it must be given")
    default: Any = Field(default=None, description="The value if none is given; it makes the parameter optional")
    description: str = Field(default="", description="What it is for")
    example: Any = Field(default=None, description="A value for the example that ot.snippets() shows")

    @property
    def optional(self) -> bool:
        """True when an expansion may leave it out."""
        return not self.required or "default" in self.model_fields_set


class Snippet(Settings):
    """A Jinja2 template that expands to a program."""

    description: str = Field(default="", description="What it does, as ot.snippets() shows it")
    params: Mapping[str, SnippetParam] = Field(default_factory=dict, description="Its parameters, by name")
    body: str = Field(description="The template: its expansion is the program")


class Project(Settings):
    """A directory that programs may name as ``proj.<name>``."""

    path: Path = Field(strict=False, description="The directory; ~ is the home directory")
    attrs: Mapping[str, Any] = Field(
        default_factory=dict, repr=False, description="Its values; ${NAME} inserts a secret"
    )


class ObjectStorage(Settings):
    """An object store that holds the results of all replicas."""

    url: StoreAddress = Field(
        default="",
        description="s3://bucket/prefix, file:///directory that replicas share, or what a plugin adds; empty: none",
    )
    endpoint: WebAddress = Field(default="", description="Where the bucket is, if not at Amazon")
    region: str = Field(default="", description="The bucket's region; empty means AWS_REGION")
    access_key_id: str = Field(default="", repr=False, description="Write ${NAME}; empty means AWS_ACCESS_KEY_ID")
    secret_access_key: str = Field(
        default="", repr=False, description="Write ${NAME}; empty means AWS_SECRET_ACCESS_KEY"
    )
    session_token: str = Field(default="", repr=False, description="Of temporary credentials: write ${NAME}")
    seconds: float = Field(
        default=2.0, ge=0.2, le=60, description="How long the store may take for a result; the reply does without then"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.access_key_id) != bool(self.secret_access_key):
            raise ValueError("access_key_id and secret_access_key belong together")
        return self


class Output(Settings):
    """How results are returned, and when they are stored instead."""

    max_inline_size: int = Field(
        default=50_000, ge=0, description="Replies above this many bytes are stored; 0 never stores"
    )
    result_ttl: float = Field(
        default=3600,
        ge=0,
        le=31_536_000,
        allow_inf_nan=False,
        description="How long a stored result is kept, in seconds; 0 keeps it forever",
    )
    preview_lines: int = Field(default=10, ge=0, le=1000, description="Lines of a stored result shown in its summary")
    result_store_dir: InsidePath = Field(
        default="tmp", description="Where results are stored, relative to the .onetool directory"
    )
    max_total_bytes: int = Field(
        default=2_000_000_000, ge=1, description="Total bytes of stored results; above it the oldest are removed"
    )
    store: ObjectStorage = Field(
        default_factory=ObjectStorage, description="An object store for results, in place of result_store_dir"
    )


class Limits(Settings):
    """What one run may use."""

    calls_in_flight: ClassVar[int] = 32
    """Tool calls of one run at a time."""
    print_bytes: ClassVar[int] = 1 << 20
    """Bytes of print() output to keep."""

    run_seconds: Seconds = Field(default=120.0, description="Wall time of a run, including its tools")
    cpu_seconds: Seconds = Field(default=5.0, description="CPU time of the program itself")
    call_seconds: Seconds = Field(default=30.0, description="Wall time of one tool call")
    drain_seconds: float = Field(
        default=5.0,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="Time for open runs to finish when the server is asked to end (SIGTERM, SIGHUP)",
    )
    calls: int = Field(default=1000, ge=1, le=1_000_000, description="Tool calls of one run")
    file_calls: int = Field(
        default=20_000,
        ge=1,
        le=10_000_000,
        description="File operations of one run by Python's own functions, such as open(); separate from calls",
    )
    file_bytes: int = Field(
        default=256 << 20,
        ge=1,
        description="Bytes that one run may write to files, with the tools of the pack file and Python's own functions",
    )
    memory_mb: int = Field(default=128, ge=16, le=65_536, description="Memory of the program")
    command_bytes: int = Field(default=1 << 20, ge=1, description="Size of a command")
    value_bytes: int = Field(
        default=32 << 20, ge=1024, description="Size of one value that crosses between a program and a tool"
    )
    value_parts: int = Field(
        default=150_000,
        ge=100,
        le=10_000_000,
        description="Elements, entries and containers of one value; a larger one is stored unread",
    )


class Security(Settings):
    """What is done to text from outside before a model reads it."""

    sanitize: Literal["opt-in", "untrusted", "always"] = Field(
        default="opt-in",
        description="opt-in: when the program asks; untrusted: results of proxied tools too; always: every reply",
    )
    roots: Texts = Field(
        default=(),
        description="Directories that tools may use in addition to the working directory",
        examples=[["~/notes"]],
    )
    dot_names: Texts = Field(
        default=(),
        description="Names beginning with a dot that programs may write without a question, in addition to the usual "
        "ones; * stands for any characters",
        examples=[[".mytool"]],
    )
    internal_hosts: Texts = Field(
        default=(),
        description="Hosts that may have internal addresses though you wrote no address there, with or without a port",
        examples=[["localhost:3000"]],
    )


class GroupPolicy(Settings):
    """Further patterns for the members of one group."""

    allow: ToolPatterns = Field(default=(), description="Patterns of tools that run for them without asking")
    ask: ToolPatterns = Field(default=(), description="Patterns of tools that ask them first")
    deny: ToolPatterns = Field(default=(), description="Patterns of tools that no program of theirs may call")


class Policy(Settings):
    """Which tools may be called, as ``pack.tool`` patterns: the narrower pattern wins, then deny, ask, allow.

    A tool that no pattern matches runs if it is marked as read-only. Other tools of proxied servers ask; tools of
    other packs run unless they are marked as destructive.
    """

    allow: ToolPatterns = Field(
        default=(), description="Patterns of tools that run without asking", examples=[["github.*"]]
    )
    ask: ToolPatterns = Field(default=(), description="Patterns of tools that ask first", examples=[["*.delete_*"]])
    ask_calls: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="How many calls of a tool a yes allows before it asks again, if the program does not tell how many",
    )
    ask_seconds: Seconds = Field(default=300.0, description="How long a question waits for an answer")
    changed_definitions: Literal["flag", "block"] = Field(
        default="flag",
        description="If a server's tool has changed: flag: report it; block: refuse it until onetool approve",
    )
    deny: ToolPatterns = Field(
        default=(), description="Patterns of tools that no program may call", examples=[["vault.*"]]
    )
    questions: Literal["auto", "client", "terminal", "both", "nowhere"] = Field(
        default="auto",
        description="Where questions go: the client's dialogue, onetool answer in a terminal, both, or nowhere. "
        "auto: the terminal where the client cannot ask",
    )
    notify: bool = Field(
        default=False, description="Whether notify-send tells the desktop of a question that waits for a terminal"
    )
    read_only: ToolPatterns = Field(
        default=(),
        description="Patterns of tools that are known to change nothing: the ledger leaves them out",
        examples=[["github.get_*"]],
    )
    exact_names: bool = Field(
        default=False, description="Whether tools marked as destructive accept only full parameter names"
    )
    groups: Mapping[str, GroupPolicy] = Field(
        default_factory=dict,
        description="By group, further patterns that count for its members: those whose token names the group",
        examples=[{"interns": {"deny": ["*.delete_*"]}}],
    )


def pattern_lists(policy: Policy | GroupPolicy) -> dict[PolicyRule, tuple[str, ...]]:
    """Return the lists of *policy*, by name."""
    return {"allow": policy.allow, "ask": policy.ask, "deny": policy.deny}


class PortableEngineSettings(Settings):
    """The pool of the portable engine."""

    processes: int = Field(default=64, ge=1, le=1024, description="Programs that may run at the same time")
    queue_seconds: Seconds = Field(default=10.0, description="How long a run waits for a free process")


class ExactEngineSettings(Settings):
    """The processes of the exact engine, and of the trusted one."""

    processes: int = Field(default=64, ge=1, le=1024, description="Programs that may run at the same time")
    ready: int = Field(default=6, ge=0, le=64, description="Locked-down processes that wait for the next programs")
    queue_seconds: Seconds = Field(default=10.0, description="How long a run waits for a free process")
    require_layers: tuple[Literal["namespaces", "cgroup"], ...] = Field(
        default=(),
        strict=False,
        description="Optional layers of the jail without which the server refuses to start",
        examples=[["namespaces", "cgroup"]],
    )
    packages: Texts = Field(
        default=(),
        description="Packages that programs may import, as pip requirements; uv installs them once",
        examples=[["numpy", "pandas>=2"]],
    )


class Engines(Settings):
    """Where programs run."""

    use: Literal["auto", "exact", "portable", "trusted"] = Field(
        default="auto",
        description="auto: the exact engine if its self-test passes, otherwise the portable one; trusted: no sandbox",
    )
    exact: ExactEngineSettings = Field(
        default_factory=ExactEngineSettings, description="The processes of the exact engine"
    )
    portable: PortableEngineSettings = Field(
        default_factory=PortableEngineSettings, description="The pool of the portable engine"
    )


class SessionSettings(Settings):
    """Variables that runs with the same ``session`` share; limits.memory_mb bounds what one of them holds."""

    most: int = Field(default=8, ge=0, le=256, description="Sessions at a time; 0 allows none")
    idle_seconds: Seconds = Field(default=1800.0, description="How long an idle session is kept")


class PackWorker(Settings):
    """How the workers of one pack are run, and which of the user's secrets it may have."""

    processes: int = Field(default=1, ge=1, le=16, description="Workers at a time")
    idle_seconds: Seconds | None = Field(default=None, description="As workers.idle_seconds, for this pack")
    memory_mb: int = Field(default=0, ge=0, le=1_048_576, description="Address space of a worker; 0 means no limit")
    serial: bool = Field(default=False, description="Whether calls run one at a time")
    secrets: Texts = Field(
        default=(),
        description="Your secrets that a project's pack or server of this name gets if it asks for them",
    )


class Workers(Settings):
    """The processes of packs that run in their own: users' packs, and the bundled ones with heavy libraries."""

    idle_seconds: Seconds = Field(default=600.0, description="How long an idle worker is kept")
    start_seconds: Seconds = Field(default=20.0, description="How long importing a pack may take")
    install_seconds: Seconds = Field(default=120.0, description="How long installing its dependencies may take")
    packs: Mapping[str, PackWorker] = Field(
        default_factory=dict, description="Settings of individual packs", examples=[{"weather": {"memory_mb": 512}}]
    )


class Packs(Settings):
    """Which packs are offered."""

    disabled: Texts = Field(
        default=(),
        description="Packs to leave out, whoever brought them; a server is left out by its own enabled: false",
        examples=[["web", "llm"]],
    )


class OAuthSettings(Settings):
    """How tokens for a server are obtained; ``auth: oauth`` alone means a login with the defaults."""

    grant: Literal["none", "authorization_code", "client_credentials"] = Field(
        default="authorization_code",
        description="authorization_code: a person logs in with onetool auth login; client_credentials: no person is "
        "needed; none: no tokens",
    )
    scopes: Texts = Field(
        default=(), description="What the login asks for; empty means what the server asks for", examples=[["read"]]
    )
    client_id: str = Field(
        default="",
        description="The client that you registered with the vendor; empty registers one at the login, if the "
        "authorization server allows it; ${NAME} inserts a secret",
    )
    client_secret: str = Field(default="", repr=False, description="Its secret, if it has one: write ${NAME}")
    private_key: str = Field(
        default="",
        repr=False,
        description="The PEM key that signs in place of a client_secret, with client_credentials: write ${NAME}",
    )
    signing_algorithm: str = Field(default="RS256", description="The algorithm of private_key, as JWT names it")
    issuer: WebAddress = Field(
        default="",
        description="The authorization server that may have the client's credentials; client_credentials needs it",
    )
    pkce: Literal["announced", "assumed"] = Field(
        default="announced",
        description="announced: the metadata of the authorization server must name PKCE with S256, as MCP requires; "
        "assumed: those of issuer may say nothing about it, because you know that it supports it",
    )
    client_metadata_url: WebAddress = Field(
        default="",
        description="The https address of your client id metadata document, used if the authorization server reads "
        "such documents and there is no client_id",
    )
    port: int = Field(
        default=41237,
        ge=1024,
        le=65_535,
        description="The port of http://127.0.0.1:<port>/callback, where the browser comes back to after a login",
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.client_secret and not self.client_id:
            raise ValueError("client_secret needs a client_id")
        if self.pkce == "assumed" and not self.issuer:
            raise ValueError("pkce: assumed requires issuer: the authorization server that you know supports PKCE")
        if self.grant != "client_credentials":
            if self.private_key:
                raise ValueError("private_key needs grant: client_credentials")
            return self
        missing = [name for name in ("client_id", "issuer") if not getattr(self, name)]
        if missing:
            raise ValueError(f"grant: client_credentials needs {' and '.join(missing)}")
        if bool(self.client_secret) == bool(self.private_key):
            raise ValueError("grant: client_credentials needs either client_secret or private_key")
        return self


def _oauth_settings(given: Any) -> Any:
    """Return the settings that a single word stands for."""
    grants = {"oauth": "authorization_code", "none": "none"}
    if isinstance(given, str):
        if given not in grants:
            raise ValueError(f"write oauth, none or keys such as scopes, not '{given[:40]}'")
        return {"grant": grants[given]}
    return given


ServerLogin = Annotated[
    OAuthSettings, BeforeValidator(_oauth_settings, json_schema_input_type=Literal["oauth", "none"] | OAuthSettings)
]


class Server(Settings):
    """An MCP server whose tools are a pack: started by a command, or reached at an address."""

    type: Literal["stdio", "http", "sse"] | None = Field(
        default=None,
        description="stdio with a command; http or sse, the older way, with a url; by default found out",
    )
    command: str = Field(default="", description="The program to start; ${NAME} inserts a secret")
    args: Texts = Field(default=(), repr=False, description="Its arguments; like command, and ${workspace}")
    env: Mapping[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="Its environment, added to what every child has; ${NAME} inserts a secret or a variable, "
        "${workspace} is the working directory",
    )
    cwd: str = Field(
        default="", description="Where it starts; empty means a private directory, ${workspace} must be trusted"
    )
    url: WebAddress = Field(default="", description="The address of a server over HTTP, used as written")
    urls: tuple[WebAddress, ...] = Field(
        default=(),
        strict=False,
        description="The addresses of several hosts that offer the same tools, in place of url: a call that one of "
        "them has not taken goes to the next",
    )
    openapi: str = Field(
        default="",
        description="The OpenAPI document of an API at url, whose operations are the tools: an address, or a path from "
        "the .onetool directory on",
    )
    headers: Mapping[str, str] = Field(
        default_factory=dict, repr=False, description="Headers of every request; ${NAME} inserts a secret"
    )
    auth: ServerLogin = Field(
        default_factory=lambda: OAuthSettings(grant="none"),
        description="oauth, if the server at the url wants a login by OAuth, or keys that say how; "
        "see onetool auth login",
    )
    pack: PackName = Field(default="", description="The pack's name; empty derives it from the server's name")
    enabled: bool = Field(default=True, description="Whether it is used")
    only_in: Directory = Field(
        default="", description="The directory in which it is used, and in those below it; empty means everywhere"
    )
    tools: Texts = Field(default=(), description="Patterns of its tools to offer; a leading ! leaves them out")
    timeout: Seconds | None = Field(default=None, description="As limits.call_seconds, for its tools")
    start_seconds: Seconds = Field(default=30.0, description="How long starting and connecting may take")
    idle_seconds: Seconds = Field(default=600.0, description="How long an idle one is kept")
    concurrency: int = Field(default=16, ge=1, le=1000, description="Concurrent calls")
    scope: Literal["workspace", "shared", "private"] | None = Field(
        default=None,
        description="Which clients of a shared OneTool use the same one: those that work in one directory, all of them "
        "(shared), or each its own (private); by default workspace, and private for browsers and the like",
    )

    @model_validator(mode="before")
    @classmethod
    def _first_of_several(cls, given: Any) -> Any:
        found = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        urls: Any = found.get("urls")
        if not urls or not isinstance(urls, list | tuple):
            return cast("Any", given)
        if "url" in found:
            raise ValueError("either url or urls, not both")
        return {**found, "url": cast("Any", urls)[0]}

    @model_validator(mode="after")
    def _several_hosts(self) -> Self:
        if self.urls and (self.openapi or self.type == "sse" or self.auth.grant != "none"):
            raise ValueError("urls is only for streamable HTTP servers whose credentials, if any, are in headers")
        return self

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        kind = self.type or ("http" if self.url or self.openapi else "stdio")
        if self.openapi and (kind != "http" or not self.url):
            raise ValueError("a server with openapi needs a url, the address that its requests go to, and no command")
        wanted, other = ("command", "url") if kind == "stdio" else ("url", "command")
        if not getattr(self, wanted):
            raise ValueError(f"a server of type {kind} needs a {wanted}")
        if getattr(self, other):
            raise ValueError(f"a server of type {kind} has no {other}")
        return self

    @model_validator(mode="after")
    def _one_credential(self) -> Self:
        if self.auth.grant == "none":
            return self
        if not self.url:
            raise ValueError("auth is for a server with a url; give a program its credentials in env")
        if any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("either auth or an Authorization header, not both")
        return self

    @field_validator("command")
    @classmethod
    def _one_program(cls, command: str) -> str:
        # No shell reads it: a whole command line here would be sought as a file of that name.
        if " " in command and "/" not in command and "\\" not in command:
            raise ValueError(f"command is one program, its arguments go to args: '{command[:60]}'")
        return command


class Logs(Settings):
    """The server's log: on standard error, and to a file that ``onetool logs`` shows."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="The lowest level to write; INFO writes every run and every tool call"
    )
    format: Literal["text", "json"] = Field(
        default="text", description="The format on standard error; the file always contains lines of JSON"
    )
    file: bool = Field(
        default=True, description="Whether to write the file logs/onetool.log below the user's .onetool directory"
    )


class Stats(Settings):
    """Statistics of runs and tool calls; never arguments, values or texts."""

    enabled: bool = Field(default=True, description="Whether anything is counted")
    retention_days: int = Field(
        default=400, ge=0, le=36_500, description="Days to keep daily sums; 0 keeps them forever"
    )


class LedgerSettings(Settings):
    """What is written down about calls that may have changed something."""

    durability: Literal["process", "power"] = Field(
        default="process",
        description="What an entry survives before its call is sent: process: a crash or kill; power: a loss of power",
    )
    unavailable: Literal["send", "refuse"] = Field(
        default="send",
        description="What happens to a call that cannot be written down: send: its reply says so; refuse. "
        "Runs in the background always refuse",
    )
    days: int = Field(default=30, ge=1, le=3650, description="How long entries are kept")


class UndoSettings(Settings):
    """What is kept of what was there before a run changed it, for as long as the ledger's entries."""

    file_bytes: int = Field(default=8 << 20, ge=0, description="The largest file that is kept")
    run_bytes: int = Field(default=64 << 20, ge=0, description="Bytes kept of one run; 0 keeps nothing")
    total_bytes: int = Field(
        default=512 << 20, ge=0, description="Bytes kept of all runs of a user; the oldest go first"
    )


class Background(Settings):
    """Runs that outlive the call that asked for them."""

    run_seconds: Seconds = Field(default=3600.0, description="How long a run in the background may take")
    at_once: int = Field(default=4, ge=1, le=1000, description="How many of them a process carries out at once")
    most_open: int = Field(default=100, ge=1, le=100_000, description="How many a user may have that have not ended")


class Recordings(Settings):
    """Runs of clients that are recorded, so that they can be replayed."""

    directory: str = Field(
        default="",
        description="Where each run's program and calls are kept, relative to the user's .onetool; empty records none",
        examples=["recordings"],
    )
    most: int = Field(default=100, ge=1, le=10_000, description="How many are kept; the oldest are removed")


class Topic(Settings):
    """Where messages of some topics go."""

    pattern: str = Field(min_length=1, max_length=200, description="The topics: * stops at a colon, ** does not")
    file: str = Field(min_length=1, description="The file to append them to, relative to .onetool")


class Topics(Settings):
    """The topics of ``tools.msg``; other keys there belong to a pack of that name, if there is one."""

    topics: tuple[Topic, ...] = Field(default=(), strict=False)

    @classmethod
    def of(cls, tools: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the topics in the settings of all packs."""
        return cls.model_validate({"topics": tools.get("msg", {}).get("topics", ())})


class Prompts(Settings):
    """What models are told; the file ``prompts.yaml`` beside the configuration may hold the same section."""

    packs: Mapping[str, str] = Field(
        default_factory=dict,
        description="How to use a pack, by pack; ot.help() and ot.packs() show it",
        examples=[{"file": "Paths are relative to the project."}],
    )


class Config(Settings):
    """One whole configuration: the user's and, once trusted, the project's over it."""

    version: int = Field(default=VERSION, ge=1, description="Version of this file's format")
    include: Texts = Field(
        default=(), description="Files to merge below this one, from left to right", examples=[["more/team.yaml"]]
    )
    aliases: Mapping[AliasName, ToolName] = Field(
        default_factory=dict,
        validation_alias=AliasChoices("aliases", "alias"),
        description="Short names of tools",
        examples=[{"ws": "web.search"}],
    )
    snippets: Mapping[SnippetName, Snippet] = Field(
        default_factory=dict,
        description="Templates that expand to programs",
        examples=[{"hello": {"body": '"hello {{ name }}"'}}],
    )
    projects: Mapping[ProjectName, Project] = Field(
        default_factory=dict, description="Directories that programs may name", examples=[{"site": "~/projects/site"}]
    )
    secrets_file: str = Field(default="secrets.yaml", description="File with secrets, relative to this one")
    output: Output = Field(default_factory=Output, description="How results are returned, and when they are stored")
    limits: Limits = Field(default_factory=Limits, description="What one run may use")
    security: Security = Field(default_factory=Security, description="How text from outside is treated")
    policy: Policy = Field(default_factory=Policy, description="Which tools may be called")
    engines: Engines = Field(default_factory=Engines, description="Where programs run")
    sessions: SessionSettings = Field(
        default_factory=SessionSettings, description="Variables kept between runs, if a run asks for it"
    )
    packs: Packs = Field(default_factory=Packs, description="Which packs are offered")
    workers: Workers = Field(default_factory=Workers, description="The processes of packs with dependencies")
    servers: Mapping[ServerName, Server] = Field(
        default_factory=dict,
        description="MCP servers whose tools are packs",
        examples=[{"time": {"command": "uvx", "args": ["mcp-server-time"]}}],
    )
    tools: Mapping[str, Mapping[str, Any]] = Field(
        default_factory=dict,
        repr=False,
        description="Settings of packs, by pack; ${NAME} inserts a secret",
        examples=[{"file": {"max_bytes": 1000000}}],
    )
    prompts: Prompts = Field(default_factory=Prompts, description="What models are told")
    docs_url: str = Field(
        default="",
        description="Address of a bundled pack's documentation, as help shows it; empty shows none",
        examples=["https://docs.example.org/packs/{doc_slug}/"],
    )
    stats: Stats = Field(default_factory=Stats, description="Statistics of runs and tool calls")
    ledger: LedgerSettings = Field(
        default_factory=LedgerSettings, description="The record of calls that may have changed something"
    )
    undo: UndoSettings = Field(default_factory=UndoSettings, description="What 'onetool undo' can take back")
    background: Background = Field(default_factory=Background, description="Runs that outlive the call")
    recording: Recordings = Field(default_factory=Recordings, description="Recordings of what clients' programs call")
    logs: Logs = Field(default_factory=Logs, description="The server's log")
    daemon: Literal["on", "off"] = Field(
        default="on", description="off: serve --shared gives each client a server of its own; as ONETOOL_DAEMON=off"
    )
    _sections: Mapping[str, BaseModel] = PrivateAttr(default_factory=dict[str, BaseModel])

    @field_validator("version")
    @classmethod
    def _check_version(cls, version: int) -> int:
        if version > VERSION:
            raise ValueError(f"version {version} needs a newer release of OneTool; this one reads up to {VERSION}")
        return version

    @field_validator("tools")
    @classmethod
    def _check_topics(cls, tools: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        try:
            Topics.of(tools)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(step) for step in first["loc"])
            raise ValueError(f"msg.{where}: {first['msg']}; a topic is {{pattern: ..., file: ...}}") from None
        return tools

    def section[S: BaseModel](self, model: type[S]) -> S:
        """Return the section of a plugin that is this *model*, with its defaults where nothing is written of it."""
        return next((found for found in self._sections.values() if isinstance(found, model)), None) or _defaults(model)

    def with_sections(self, sections: Mapping[str, BaseModel]) -> Self:
        """Return the same with these *sections* of plugins, by name."""
        copied = self.model_copy()
        copied._sections = dict(sections)
        return copied

    @property
    def topics(self) -> tuple[Topic, ...]:
        """Where ``ot.notify()`` puts messages, in the order in which patterns are tried."""
        return Topics.of(self.tools).topics


@cache
def _defaults[S: BaseModel](model: type[S]) -> S:
    return model()
