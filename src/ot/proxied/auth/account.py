"""ServerAccount: whose login at which server, and how it is obtained."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ot.config.secrets import IssuedSecrets
from ot.proxied.auth.token_record import OpenTokenStore, TokenRecord
from ot_sdk.redaction import Redactor

FOLDER = "logins"
"""Where the records are, below the user's directory."""

type Grant = Literal["authorization_code", "client_credentials"]


@dataclass(frozen=True)
class ServerAccount:
    """One principal at one server; ``owner`` is the project that brought the server, whose login is its own."""

    server: str
    url: str
    principal: str
    directory: Path
    owner: str = ""
    grant: Grant = "authorization_code"
    scopes: tuple[str, ...] = ()
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    signing_algorithm: str = "RS256"
    issuer: str = ""
    pkce: Literal["announced", "assumed"] = "announced"
    """Whether an issuer that says nothing about PKCE is taken to support it."""
    client_metadata_url: str = ""
    port: int = 0
    callback: str = ""
    """Where the browser comes back to, if not to a port of this machine."""
    internal_hosts: tuple[str, ...] = ()
    """Hosts that may have internal addresses though the user did not write them."""
    issued: IssuedSecrets = field(default_factory=IssuedSecrets, repr=False, compare=False)
    """Hears of every token, so that no text shows it."""
    shared: OpenTokenStore[ServerAccount] | None = field(default=None, repr=False, compare=False)
    """Where replicas of a server keep its record; None: in this machine's keyring, or in a file."""

    @property
    def key(self) -> str:
        """What the record is kept under: it names nobody."""
        return hashlib.sha256(json.dumps([self.principal, self.url, self.owner]).encode()).hexdigest()[:32]

    def redactors(self) -> list[Redactor]:
        """Return redactors of the login's tokens, and of the client's secrets in the settings."""
        return self.issued.of(self.key, f"{self.key}/client")

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server sends the browser back to."""
        return self.callback or f"http://127.0.0.1:{self.port}/callback"

    @property
    def rule(self) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """What ``AddressRule`` is made of for all that the login leads to."""
        return (self.url, *filter(None, [self.issuer])), self.internal_hosts, not self.owner

    @property
    def parts(self) -> list[object]:
        """All that makes a connection with this login another one."""
        client = [self.client_id, self.client_secret, self.private_key, self.signing_algorithm, self.issuer]
        return [self.key, self.grant, list(self.scopes), *client]

    def accept(self, record: TokenRecord | None) -> TokenRecord | None:
        """Return *record*, unless it was made with a client or at an issuer that the settings no longer name."""
        if record is None or (self.client_id and record.client_id != self.client_id):
            return None
        return None if self.issuer and record.issuer.rstrip("/") != self.issuer.rstrip("/") else record

    def note(self, record: TokenRecord | None) -> TokenRecord | None:
        """Return *record*, whose secrets are redacted from this moment."""
        if record:
            self.issued.add(self.key, f"login of {self.server}", record.secrets)
        return record

    def of(self, principal: str) -> ServerAccount:
        """Return the account of *principal* at the same server."""
        return self if principal == self.principal else replace(self, principal=principal)
