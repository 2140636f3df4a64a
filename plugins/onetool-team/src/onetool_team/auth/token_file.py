"""The file of named tokens: one on a line, for more people than belong into the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from onetool_team.settings import TOKEN_HASH, TOKEN_NAME, Http, StaticToken, TokenScope
from ot.config.paths import expand_home
from ot.errors import ConfigError
from ot.files.private_file import hold_lock, read_regular, write_private

MOST_BYTES = 64 << 20
SCOPES, GROUPS = "scopes=", "groups="
LINE = re.compile(
    rf"({TOKEN_NAME.pattern})\s+({TOKEN_HASH.pattern})"
    rf"(?:\s+{SCOPES}((?:run|admin)(?:,(?:run|admin))*))?(?:\s+{GROUPS}([^\s,=]+(?:,[^\s,=]+)*))?"
)
FORM = "a line has a name, the hash that onetool token prints, and then scopes=run,admin and groups=a,b where needed"


def token_file(given: str, global_dir: Path) -> Path:
    """Return where ``http.tokens_file`` is: a relative path is below the directory of the configuration."""
    return global_dir / expand_home(given)


def named_tokens(settings: Http, global_dir: Path) -> dict[str, StaticToken]:
    """Return the tokens of the settings and of the file that they name, by name.

    Raises:
        ConfigError: That file cannot be used.
    """
    if not settings.tokens_file:
        return dict(settings.tokens)
    file = token_file(settings.tokens_file, global_dir)
    listed = read_token_file(file)
    if twice := sorted(listed.keys() & settings.tokens.keys()):
        raise ConfigError(f"'{twice[0]}' has a token in http.tokens, too: keep one of them", file=file)
    return {**settings.tokens, **listed}


def read_token_file(file: Path) -> dict[str, StaticToken]:
    """Return the tokens in *file*, by name.

    Raises:
        ConfigError: It cannot be read, or one of its lines cannot.
    """
    try:
        data = read_regular(file, MOST_BYTES, follow=True).data
        text = data.decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the tokens cannot be read: {error}", file=file) from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"the file is larger than {MOST_BYTES:,} bytes, the most that is read", file=file)
    if not data.strip():
        # As with the configuration: an editor that saves truncates first.
        raise ConfigError("the file is empty", file=file, line=1, hint="write '# nobody' if that is meant")
    return _parse(text, file)


def _parse(text: str, file: Path) -> dict[str, StaticToken]:
    found: dict[str, StaticToken] = {}
    names: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line or line.startswith("#"):
            continue
        if not (match := LINE.fullmatch(line)):
            raise ConfigError(f"not a token: {FORM}", file=file, line=number)
        name, hash, scopes, groups = match.groups()
        if name in found:
            raise ConfigError(f"'{name}' is given twice", file=file, line=number)
        if hash in names:
            raise ConfigError(f"'{name}' and '{names[hash]}' have the same token", file=file, line=number)
        names[hash] = name
        # Checked by the pattern: the model would take ten times as long for each of 50,000 lines.
        found[name] = StaticToken.model_construct(
            hash=hash,
            scopes=cast("tuple[TokenScope, ...]", tuple(scopes.split(","))) if scopes else ("run",),
            groups=tuple(groups.split(",")) if groups else (),
        )
    return found


def write_token(file: Path, name: str, entry: Mapping[str, str | list[str]], *, replace: bool) -> None:
    """Put *entry* into *file* as that of *name*, in place of the one it has; other lines stay as they are.

    Raises:
        ConfigError: There is one, and it is not to be replaced; or the file cannot be used.
    """
    with hold_lock(file):
        lines = file.read_text().splitlines() if file.exists() else []
        known = _parse("\n".join(lines), file).get(name)
        if known and not replace:
            hint = "add --replace to give it a new one, or choose another name"
            raise ConfigError(f"there is already a token '{name}'", file=file, hint=hint)
        scopes = entry.get("scopes") or (known.scopes if known else ())
        groups = entry.get("groups") or (known.groups if known else ())
        words = [name, str(entry["hash"])]
        words += [SCOPES + ",".join(scopes)] if scopes else []
        words += [GROUPS + ",".join(groups)] if groups else []
        if not LINE.fullmatch(line := " ".join(words)):
            raise ConfigError(f"this token cannot be written: {FORM}", file=file)
        kept = [old for old in lines if old.split()[:1] != [name]]
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
        write_private(file, "\n".join([*kept, line, ""]), mode)
