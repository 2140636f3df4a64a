"""Takes secrets out of what other clients keep in plain text, and leaves ${NAME} in their place, free names alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from ot.config.project_rules import RUNS_CODE
from ot.config.secrets import NAME

SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE|\bPAT\b|_PAT$|DSN|CONNECTION_STRING", re.IGNORECASE
)
SECRET_VALUE = re.compile(
    r"(?:sk|pk|rk)[-_](?:live|test|ant|proj|or)?[-_\w]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abpsr]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{30,}|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|(?<![a-z+])[a-z+]++://[^/\s:@]+:[^/\s@]+@\S+"
)
SCHEME = re.compile(r"(Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)
FLAG = re.compile(r"--?[\w-]+")
QUERY = re.compile(r"([?&])([\w.-]+)=([^&#]+)")
SHORTEST = 6


@dataclass(slots=True)
class SecretsTaken:
    """Collects the secrets of one server, each under a name of its own."""

    server: str
    taken: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    fields: list[str] = field(default_factory=list[str])

    def env(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return *given* with its secrets replaced."""
        return {name: self._replace(f"env.{name}", name, name, value) for name, value in given.items()}

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return *given* with its secrets replaced; the word before a token stays."""
        return {name: self._header(name, value) for name, value in given.items()}

    def args(self, given: list[str]) -> list[str]:
        """Return *given* with its secrets replaced: the value of ``--api-key``, or what looks like a token."""
        found: list[str] = []
        for argument in given:
            flag, equals, value = argument.partition("=")
            if equals and FLAG.fullmatch(flag):
                name = flag.lstrip("-")
                found.append(f"{flag}={self._replace(flag, name, self._own(name), value)}")
            else:
                before = found[-1] if found and FLAG.fullmatch(found[-1]) and len(found[-1]) > 2 else ""
                name = before.lstrip("-")
                found.append(self._replace(before or "args", name, self._own(name or "arg"), argument))
        return found

    def url(self, given: str) -> str:
        """Return *given* with the secrets in its query replaced."""
        return QUERY.sub(
            lambda part: f"{part[1]}{part[2]}={self._replace('url', part[2], self._own(part[2]), part[3])}", given
        )

    def all_of(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return *given*, the lines of an .env file, with every value replaced."""
        return {
            name: self._keep(f"env.{name}", name, value) if value and not RUNS_CODE.fullmatch(name) else value
            for name, value in given.items()
        }

    def _header(self, name: str, value: str) -> str:
        scheme = SCHEME.match(value)
        start = scheme.end() if scheme else 0
        return value[:start] + self._replace(f"headers.{name}", name, self._own(name), value[start:])

    def _replace(self, where: str, named: str, secret: str, value: str) -> str:
        if "${" in value or len(value) < SHORTEST or value.startswith("-") or RUNS_CODE.fullmatch(named):
            return value
        if SECRET_VALUE.fullmatch(value) or (SECRET_NAME.search(named) and not _is_harmless(value)):
            return self._keep(where, secret, value)
        return value

    def _keep(self, where: str, secret: str, value: str) -> str:
        name = secret if NAME.fullmatch(secret) else upper_name(secret)
        while self.taken.get(name, value) != value:
            name += "_2"
        self.taken[name] = value
        self.fields.append(where)
        return f"${{{name}}}"

    def _own(self, name: str) -> str:
        return upper_name(f"{self.server}_{name}")


def upper_name(text: str) -> str:
    """Return *text* as the name of a variable."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").upper()
    return name if name[:1].isalpha() else f"SECRET_{name}"


def _is_harmless(value: str) -> bool:
    """Tell a path, an address or a switch, which may stand in a variable called ..._KEY_FILE or AUTH_MODE."""
    return value.lower() in ("oauth", "disabled", "enabled", "required") or (
        value.startswith(("/", "~", "./", "http://", "https://")) and not SECRET_VALUE.fullmatch(value)
    )


def with_own_secrets(
    server: str, entry: Mapping[str, Any], secrets: Mapping[str, str], kept: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return *entry* and its *secrets*, those renamed that are *kept* already with another value."""
    names: dict[str, str] = {}
    taken = {**kept, **{name: value for name, value in secrets.items() if kept.get(name, value) == value}}
    for name, value in secrets.items():
        if taken.get(name, value) != value:
            names[name] = _free(upper_name(f"{server}_{name}"), value, taken)
            taken[names[name]] = value
    return _rename_references(entry, names), {names.get(name, name): value for name, value in secrets.items()}


def _free(name: str, value: str, taken: Mapping[str, str]) -> str:
    numbered = (f"{name}_{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if taken.get(free, value) == value)


def _rename_references(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _rename_references(entry, names) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType] - plain data of any shape
    if isinstance(value, list):
        return [_rename_references(item, names) for item in value]  # pyright: ignore[reportUnknownVariableType] - as above
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(f"${{{old}}}", f"${{{new}}}")
    return value
