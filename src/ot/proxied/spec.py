"""ServerSpec: everything that makes one proxied MCP server what it is, made from its settings and secrets."""

from __future__ import annotations

import hashlib
import json
import os
import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from ot.config.expand import REFERENCE, WORKSPACE, names_in
from ot.config.load import Loaded
from ot.config.models import OAuthSettings, PackWorker, Server
from ot.config.paths import Paths, expand_home
from ot.config.principal import os_user
from ot.config.secrets import PUBLIC, Secrets
from ot.config.setting_types import pack_name, server_address
from ot.config.trust import ServerHere
from ot.config.workspace_trust import Seal
from ot.processes.child_environ import launcher_environ, worker_environ
from ot.proxied.auth.account import FOLDER as LOGINS
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_record import OpenTokenStore
from ot.proxied.catalogue_files import FOLDER
from ot.proxied.place import ServerPlace, find_program, place_of_server, runs_modules, script_of, server_here
from ot.registry.proxy_target import ServerIdentity
from ot_sdk.redaction import Redactor

type Scope = Literal["workspace", "shared", "private"]
"""Which clients share one server: those that work in one directory, all of them, or each its own."""

STATEFUL = re.compile(r"playwright|puppeteer|selenium|browser|chrome-devtools|sequential-?thinking", re.IGNORECASE)
"""Names of servers that go on where the last call left off: a browser has one page open."""
SCOPE_ADVICE = "leave scope out, and clients that work in one directory share it"

CREDENTIAL = re.compile(
    r"auth(?!or(?!iz))|token|secret|passw|pwd|credential|cookie|api[_-]?key|(?:^|[_-])(?:key|pat|sig|signature)$",
    re.IGNORECASE,
)
"""What headers, variables and parameters are called that hold a secret."""
SCHEMES = frozenset({"basic", "bearer", "token"})
USER_INFO = re.compile(r"://([^/?#@:\s]++)(?::([^/?#@\s]*+))?@")

HOST_SECONDS = 10.0
"""How long connecting one of several hosts may take: the next one waits for it."""
FOREIGN = re.compile(r"\$\{(?:(env):(\w++)|(input|keyring|file|op|workspaceFolder|userHome)\b(?:[^}$]|\$(?!\{))*+)\}")


@dataclass(frozen=True)
class ServerSpec:
    """A server's address with its secrets filled in, and its limits; when that differs, it is another server.

    ``problem`` says why it cannot be started at all: a secret that is missing, for example.
    """

    name: str
    pack: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """All environment variables of its process."""
    cwd: str = ""
    url: str = ""
    others: tuple[str, ...] = ()
    """The addresses of further hosts that offer the same."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    transport: Literal["", "http", "sse"] = ""
    """How its address is spoken to; empty: found out."""
    internal_hosts: tuple[str, ...] = ()
    """Hosts that may have internal addresses though the user did not write them."""
    of_project: bool = False
    """Whether a project brought it: then its own addresses are not what the user wrote, either."""
    account: ServerAccount | None = None
    """The login that its requests carry, where it has one."""
    openapi: str = ""
    """The full path or the address of the document whose operations are its tools, at ``url``."""
    kept_in: str = ""
    """Where what is known of servers is kept."""
    start_seconds: float = 30.0
    call_seconds: float | None = None
    idle_seconds: float = 600.0
    concurrency: int = 16
    tools: tuple[str, ...] = ()
    problem: str = ""
    missing: tuple[str, ...] = ()
    """The names of the secrets and variables that it lacks."""
    written: ServerIdentity | None = None
    """What its user wrote, where it came from a configuration: filled in and placed, it is another text."""
    workspace: str = ""
    """The directory that its client works in, which it is told as its root."""
    scope: Scope = "workspace"
    """Which clients use the same one: those of one directory, all, or none."""
    connection: str = ""
    """The one client that it is for, where several are served and this is for nobody else."""
    in_workspace: bool = False
    """Whether ``cwd`` is in the workspace, which has to be trusted for it."""
    private: bool = False
    """Whether ``cwd`` is its own private directory, made when it is started."""
    seal: Seal | None = field(default=None, repr=False)
    """What must be unchanged in ``cwd`` when it is started."""
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """What it was given that nobody else should see, each with the name that it is called by."""
    held_as: str = ""
    """The key of the server that a workspace holds, of which this is one as another principal uses it."""

    @cached_property
    def key(self) -> str:
        """What tells this server from every other one; changed values of secrets count, and cannot be read from it."""
        parts = [self.name, self.command, self.args, dict(self.env), self.cwd, self.url, dict(self.headers)]
        parts += [self.transport, self.internal_hosts, self.of_project]
        # A connection is made for these, too, and would not hear of other ones.
        parts += [self.start_seconds, self.call_seconds, self.idle_seconds, self.concurrency]
        parts += [self.told_workspace, self.connection, dict(self.seal.files) if self.seal else None, self.openapi]
        parts += self.account.parts if self.account else []
        return _hash(*parts, *([self.others] if self.others else []))

    def redactor(self) -> Redactor:
        """Return a redactor of the secrets that it was given, and of the tokens of its login so far."""
        if self.account is None:
            return self._redactor
        return Redactor.join([self._redactor, *self.account.redactors()])

    @cached_property
    def _redactor(self) -> Redactor:
        host = urlsplit(self.url).hostname or ""
        # Where it is reached is no secret, and stands in every link.
        return Redactor((name, value) for name, value in (*_credentials(self), *self.secrets) if value not in host)

    @property
    def rule(self) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """What ``AddressRule`` is made of: its addresses, hosts that are allowed, and whether the user wrote it."""
        document = (self.openapi,) if self.openapi.startswith(("http://", "https://")) else ()
        return (self.url, *self.others, *document), self.internal_hosts, not self.of_project

    @property
    def told_workspace(self) -> str:
        """The directory that it is told as its root; one that is shared by all is told none."""
        return "" if self.scope == "shared" else self.workspace

    @cached_property
    def hosts(self) -> tuple[ServerSpec, ...]:
        """Each of its hosts, to be connected by itself; most servers have one."""
        if not self.others:
            return (self,)
        seconds = min(self.start_seconds, HOST_SECONDS)
        return tuple(replace(self, url=url, others=(), start_seconds=seconds) for url in (self.url, *self.others))

    def of(self, principal: str) -> ServerSpec:
        """Return the server as *principal* uses it: with a login there is a connection for each."""
        account = self.account.of(principal) if self.account else None
        return self if account is self.account else replace(self, account=account, held_as=self.held_as or self.key)

    @property
    def state_unused(self) -> dict[str, str]:
        """How it is before it was ever used: idle, unless it could not be started at all."""
        return {"state": "failed", "why": self.problem} if self.problem else {"state": "idle"}

    @cached_property
    def identity(self) -> ServerIdentity:
        """What its user approved, and what is known of it is kept under."""
        return self.written or _identity(self.name, self)

    @property
    def asker(self) -> ServerIdentity:
        """What is noted when it asks; shared by all it is told no roots, so asking for them does not count."""
        known = self.identity
        return replace(known, written=_hash(known.written, self.scope)) if self.scope == "shared" else known


def resolve_specs(
    loaded: Loaded,
    paths: Paths,
    *,
    trusted: bool = False,
    principal: str = "",
    shared_logins: OpenTokenStore[ServerAccount] | None = None,
    connection: str = "",
    asks: Callable[[ServerIdentity], bool] = lambda identity: False,
) -> dict[str, ServerSpec]:
    """Return the servers in use by name, each with the secrets that it may have, as *principal* uses them.

    With *trusted*, a server may start in the workspace for this once. Those that are private, and each that *asks* its
    client something, are for *connection* alone.
    """
    packs = loaded.config.workers.packs
    specs = {
        name: resolve_spec(
            name,
            server,
            loaded.secrets,
            paths,
            _project_of(loaded, name),
            granted=packs.get(server.pack or pack_name(name), PackWorker()).secrets,
            secrets_files=loaded.secret_files,
            internal_hosts=loaded.config.security.internal_hosts,
            trusted=trusted,
            principal=principal,
            own_secrets=loaded.own_secrets,
        )
        for name, server in loaded.config.servers.items()
        if server.enabled
    }
    if connection:
        specs = {name: _for_one_client(spec, connection, asks) for name, spec in specs.items()}
    return {name: _with_logins(spec, shared_logins) for name, spec in specs.items()} if shared_logins else specs


def _for_one_client(spec: ServerSpec, connection: str, asks: Callable[[ServerIdentity], bool]) -> ServerSpec:
    return replace(spec, connection=connection) if spec.scope == "private" or asks(spec.asker) else spec


def _with_logins(spec: ServerSpec, shared: OpenTokenStore[ServerAccount]) -> ServerSpec:
    return replace(spec, account=replace(spec.account, shared=shared)) if spec.account else spec


def servers_here(loaded: Loaded, paths: Paths) -> dict[str, ServerHere]:
    """Return the servers that would be started in the workspace, with what each obeys there."""
    specs = resolve_specs(loaded, paths, trusted=True)
    return {
        name: server_here(loaded.config.servers[name], Path(spec.cwd), paths.cwd, _project_of(loaded, name))
        for name, spec in specs.items()
        if spec.in_workspace
    }


def resolve_spec(
    name: str,
    server: Server,
    secrets: Secrets,
    paths: Paths,
    project: Path | None = None,
    *,
    granted: Collection[str] = (),
    secrets_files: tuple[Path, ...] = (),
    internal_hosts: tuple[str, ...] = (),
    trusted: bool = False,
    principal: str = "",
    own_secrets: Collection[str] = (),
) -> ServerSpec:
    """Return *server* ready to be started, or with the ``problem`` that it cannot be.

    The user's own server has the user's secrets, and its ``env`` also what the environment holds. The server of a
    *project* has those that the project brought, and of the user's only those in *granted*. What the user did not
    write may be at *internal_hosts* and at no other internal address. For another *principal* than the user of this
    process it is another server, with a directory of its own; *own_secrets* are the names that this principal has
    other values for.
    """
    filling = _Filling(name, secrets, project is not None, frozenset(granted), secrets_files, str(paths.cwd))
    command, url = filling.text("command", server.command), filling.text("url", server.url)
    cwd = filling.text("cwd", server.cwd)
    principal = principal or os_user()
    tenant = "" if principal == os_user() else principal
    identity = _identity(name, server, str(project or tenant))
    place = place_of_server(identity, server, cwd, paths, project, trusted=trusted)
    if command and (why := _wrong_command(server.command, place, project) or _wrong_script(server, place)):
        filling.problems.append(f"servers.{name}.{why}")
    spec = ServerSpec(
        name=name,
        pack=server.pack or pack_name(name),
        command=command,
        args=tuple(filling.text(f"args.{n}", text) for n, text in enumerate(server.args)),
        env={
            **worker_environ(secrets.environment),
            **launcher_environ(command, secrets.environment),
            **_python_environ(server, place),
            **filling.texts("env", server.env),
        },
        cwd=place.cwd if command else "",
        url=url,
        others=tuple(filling.text("urls", text) for text in server.urls[1:]),
        headers=filling.texts("headers", server.headers),
        transport=server.type if server.type and server.type != "stdio" else "",
        internal_hosts=internal_hosts,
        of_project=project is not None,
        account=_account(name, server.auth, url, filling, paths, principal, str(project or ""), internal_hosts),
        openapi=_document(filling.text("openapi", server.openapi), project or paths.global_dir),
        kept_in=str(paths.global_dir / FOLDER),
        start_seconds=server.start_seconds,
        call_seconds=server.timeout,
        idle_seconds=server.idle_seconds,
        concurrency=server.concurrency,
        tools=server.tools,
        problem="; ".join([*filling.problems, *([place.problem] if place.problem and command else [])]),
        missing=tuple(dict.fromkeys(filling.missing)),
        workspace=str(paths.cwd),
        scope=scope_of(server),
        in_workspace=place.in_workspace and bool(command),
        private=place.private and bool(command),
        seal=place.seal,
    )
    if server.scope == "shared" and (spec.in_workspace or WORKSPACE in filling.used):
        spec = replace(spec, problem=f"servers.{name}.scope is shared, so it knows no ${{{WORKSPACE}}}: {SCOPE_ADVICE}")
    spec = replace(spec, secrets=tuple(filling.given.items()))
    former_cwd = str(paths.cwd / expand_home(cwd)) if command else ""
    # As older versions made it: with secrets, and with the directory.
    former = _hash(spec.command, list(spec.args), former_cwd, spec.url)
    alike = tenant and not spec.account and filling.used.isdisjoint(own_secrets)
    common = _identity(name, server).written if alike else ""
    spec = replace(spec, written=replace(identity, former="" if tenant else former, common=common))
    return spec if spec.problem else _with_address_checked(spec)


def _account(
    name: str,
    auth: OAuthSettings,
    url: str,
    filling: _Filling,
    paths: Paths,
    principal: str,
    owner: str,
    internal_hosts: tuple[str, ...],
) -> ServerAccount | None:
    """Return the login of *principal*; what the settings hold of it is a secret from now on."""
    if auth.grant == "none":
        return None
    secrets = {key: filling.text(f"auth.{key}", getattr(auth, key)) for key in ("client_secret", "private_key")}
    account = ServerAccount(
        server=name,
        url=url,
        principal=principal,
        directory=paths.global_dir / LOGINS,
        owner=owner,
        grant=auth.grant,
        scopes=auth.scopes,
        client_id=filling.text("auth.client_id", auth.client_id),
        signing_algorithm=auth.signing_algorithm,
        issuer=auth.issuer,
        pkce=auth.pkce,
        client_metadata_url=auth.client_metadata_url,
        port=auth.port,
        internal_hosts=internal_hosts,
        issued=filling.secrets.issued,
        client_secret=secrets["client_secret"],
        private_key=secrets["private_key"],
    )
    account.issued.add(f"{account.key}/client", f"client of {name}", secrets.values())
    return account


def _credentials(spec: ServerSpec) -> Iterator[tuple[str, str]]:
    """Yield what the settings hold by itself that is known for a secret by where it stands, each with a name."""
    for name, value in spec.headers.items():
        if CREDENTIAL.search(name):
            scheme, _, rest = value.partition(" ")
            yield name, rest.strip() if scheme.lower() in SCHEMES else value
            yield name, _password(rest) if scheme.lower() == "basic" else ""
    yield from ((name, value) for name, value in spec.env.items() if CREDENTIAL.search(name))
    for address in (spec.url, *spec.others, spec.openapi):
        yield from ((name, value) for name, value in parse_qsl(urlsplit(address).query) if CREDENTIAL.search(name))
    named = [("address", address) for address in (spec.url, *spec.others, spec.openapi)]
    for name, text in (*named, *spec.env.items(), *spec.secrets):
        yield from ((name, unquote(found[2] or found[1])) for found in USER_INFO.finditer(text))


def _password(basic: str) -> str:
    try:
        return b64decode(basic).decode().partition(":")[2]
    except ValueError:
        return ""


def scope_of(server: Server) -> Scope:
    """Return which clients share *server*: what the settings say, else private if it is known to keep state."""
    if server.scope:
        return server.scope
    named = any(STATEFUL.search(text) for text in (server.command, server.url, *server.args))
    return "private" if named else "workspace"


def why_not_startable(spec: ServerSpec) -> str:
    """Return why *spec* cannot be started, as far as that is known without starting it, or nothing."""
    if spec.openapi.startswith("/") and not Path(spec.openapi).is_file():
        return f"servers.{spec.name}.openapi: there is no file {spec.openapi}"
    if spec.problem or not spec.command:
        return spec.problem
    if spec.cwd and not spec.private and not Path(spec.cwd).is_dir():
        return f"servers.{spec.name}.cwd is not a directory: {spec.cwd}"
    try:
        find_program(spec.command, spec.env, Path(spec.cwd or "."))
    except FileNotFoundError:
        why = f"there is no program '{spec.command}' on the PATH: install it, or give its path"
        return f"servers.{spec.name}.command: {why}"
    return ""


def _document(source: str, directory: Path) -> str:
    """Return the address or path of a server's document; a relative path is below the configuration's *directory*."""
    if not source or source.startswith(("http://", "https://")):
        return source
    return os.path.normpath(directory / expand_home(source))


def _project_of(loaded: Loaded, name: str) -> Path | None:
    return loaded.project.root if loaded.project and name in loaded.servers_of_project else None


def _python_environ(server: Server, place: ServerPlace) -> dict[str, str]:
    """Return variables that keep a Python from importing modules of its working directory."""
    if place.in_workspace:
        # Compiled modules beside the sources are not part of what is trusted, so they must not be what runs.
        return {"PYTHONPYCACHEPREFIX": f"{place.home}/pycache"}
    return {"PYTHONSAFEPATH": "1"} if place.private and runs_modules(server.command, server.args) else {}


def _wrong_command(command: str, place: ServerPlace, project: Path | None) -> str:
    """Return what is wrong with a *command* that would be looked up in the client's directory."""
    if WORKSPACE in names_in(command) and project is None:
        return "command: a server of yours cannot be a program of the workspace: write its full path"
    is_path = bool(os.path.dirname(command)) and not expand_home(command).is_absolute()  # noqa: PTH120 - pathlib takes ./program for a bare name
    if not is_path or not (place.private or (place.in_workspace and project is None)):
        return ""
    return (
        f"command: '{command}' is a relative path, and the server does not start in your directory: write the full path"
    )


def _wrong_script(server: Server, place: ServerPlace) -> str:
    """Return what is wrong with a script that would be looked up in the client's directory."""
    script = script_of(server)
    if place.in_workspace or WORKSPACE not in names_in(script):
        return ""
    return f"args: {script} is a program of the workspace, which must be trusted: add 'cwd: ${{{WORKSPACE}}}'"


def _with_address_checked(spec: ServerSpec) -> ServerSpec:
    # What a secret brought may be no address at all.
    try:
        for url in (spec.url, *spec.others):
            server_address(url)
    except ValueError:
        text = f"servers.{spec.name}.url is not an address that can be used once its secrets are filled in"
        return ServerSpec(name=spec.name, pack=spec.pack, url=spec.url, problem=text, written=spec.written)
    return spec


def _identity(name: str, given: Server | ServerSpec, owner: str = "") -> ServerIdentity:
    """Return the identity of a server from its settings as they were written, references unfilled."""
    # Of the environment and the headers the names count: a new value is a new secret, not another server.
    names = sorted(given.env), sorted(header.lower() for header in given.headers)
    document = [given.openapi] if given.openapi else []
    others = given.others if isinstance(given, ServerSpec) else given.urls[1:]
    parts = [given.command, list(given.args), given.url, given.cwd, *names, owner, *document, *others]
    return ServerIdentity(name, _hash(*parts)[:16], owner)


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class _Filling:
    """Puts values where a server's settings refer to them, and keeps what is missing."""

    server: str
    secrets: Secrets
    of_project: bool
    granted: frozenset[str]
    secrets_files: tuple[Path, ...]
    workspace: str
    problems: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    """The names that were referred to, the workspace too."""
    given: dict[str, str] = field(default_factory=dict[str, str])
    """The secrets among them, with their values."""

    def texts(self, key: str, given: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(f"{key}.{name}", text) for name, text in given.items()}

    def text(self, key: str, text: str) -> str:
        if advice := foreign_reference(text):
            self.problems.append(f"servers.{self.server}.{key}: {advice}")
        return REFERENCE.sub(lambda found: self._value(key, found[1], found[2]), text)

    def _value(self, key: str, name: str, default: str | None) -> str:
        self.used.add(name)
        if name == WORKSPACE:
            return self.workspace
        found = self._lookup(name, of_environment=key.startswith("env."))
        in_files = name in self.secrets.user or name in self.secrets.project
        # A directory that the environment names stands in half of what a server of files says.
        if found and name not in PUBLIC and (in_files or not found.startswith(("/", "~", "."))):
            self.given[name] = found
        value = found or default
        if value is None:
            self.missing.append(name)
            self.problems.append(
                f"servers.{self.server}.{key} needs {name}, which is not set: {self._advice(key, name)}"
            )
        return value or ""

    def _lookup(self, name: str, *, of_environment: bool) -> str | None:
        environment = self.secrets.environment.get(name) if of_environment else None
        if not self.of_project:
            return self.secrets.user.get(name) or environment
        if name in self.secrets.project:
            return self.secrets.project[name]
        if name in self.granted:
            return self.secrets.user.get(name) or environment
        return environment if name in PUBLIC else None

    def _advice(self, key: str, name: str) -> str:
        file = self.secrets_files[-1 if self.of_project else 0] if self.secrets_files else "secrets.yaml"
        add = f"add '{name}: ...' to {file}"
        if self.of_project:
            return f"{add}, or let it have yours with workers.packs.<pack>.secrets in your own configuration"
        return f"{add}, or set it in the environment" if key.startswith("env.") else add


def foreign_reference(text: str) -> str:
    """Return what to write instead of the first such reference in *text*, or nothing."""
    found = FOREIGN.search(text)
    if not found:
        return ""
    if found.group(1):
        return f"{found.group()} is not read here: write ${{{found.group(2)}}}"
    if found.group(3).startswith("workspace"):
        return f"{found.group()} is not read here: write ${{workspace}}"
    return f"{found.group()} is not read here: put the value into secrets.yaml and write ${{NAME}}"
