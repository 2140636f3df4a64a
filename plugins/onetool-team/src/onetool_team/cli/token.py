"""onetool token: a token for one person or program of a team's server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import echo, echo_either
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ot.config.yaml_edit import YamlText


def token(
    name: Annotated[str, typer.Argument(help="Who it is for: their results and quotas go by this name.")],
    scope: Annotated[list[str] | None, typer.Option("--scope", help="run or admin; admin includes run.")] = None,
    group: Annotated[list[str] | None, typer.Option("--group", help="A group of policy.groups it belongs to.")] = None,
    write: Annotated[
        bool,
        typer.Option("--write", help="Put the entry into http.tokens_file or onetool.yaml, which gets the hash alone."),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --write: give the name a new token; the old one is worth nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a token for a server that a team shares, and show it once: only its hash is kept."""
    from onetool_team.auth.static_tokens import new_token, token_hash

    made = new_token()
    asked = {"hash": token_hash(made)} | ({"scopes": scope} if scope else {}) | ({"groups": group} if group else {})
    _check(name, asked)
    file = _write(name, asked, replace=replace) if write else ""
    echo_either(as_json, {"name": name, "token": made, "entry": asked, "file": file}, [made])
    if not as_json:
        _explain(name, asked, file)


def _check(name: str, entry: Mapping[str, Any]) -> None:
    """Refuse what the settings would refuse."""
    from pydantic import ValidationError

    from onetool_team.settings import Http

    try:
        Http.model_validate({"tokens": {name: entry}})
    except ValidationError as error:
        raise typer.BadParameter(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None


def _write(name: str, entry: Mapping[str, Any], *, replace: bool) -> str:
    """Return the file that has the entry now; scopes and groups that a new token is not given stay the name's.

    It is that of ``http.tokens_file`` where there is one, and else the configuration.
    """
    from onetool_team.auth.token_file import token_file, write_token
    from onetool_team.settings import Http
    from ot.config.edit_config import edit_config
    from ot.config.load import load_config
    from ot.config.paths import Paths
    from ot.config.trust import Trust
    from ot.errors import ConfigError

    paths = Paths.find()
    hint = "add --replace to give it a new one, or choose another name"
    settings = load_config(paths, Trust(paths.global_dir)).config.section(Http)
    if settings.tokens_file and name not in settings.tokens:
        file = token_file(settings.tokens_file, paths.global_dir)
        write_token(file, name, entry, replace=replace)
        return str(file)

    def change(text: YamlText) -> YamlText:
        known = name in (text.get("http", "tokens") or {})
        if known and not replace:
            raise ConfigError(f"there is already a token '{name}'", file=text.file, hint=hint)
        if not known:
            return text.put(("http", "tokens", name), dict(entry))
        for key, value in entry.items():
            text = text.put(("http", "tokens", name, key), value)
        return text

    return str(edit_config(paths, change, use_global=True).file)


def _explain(name: str, entry: Mapping[str, Any], file: str) -> None:
    """Say beside the token, which alone is data, where its hash belongs."""
    from ot.config.yaml_edit import block

    echo("This is shown once: keep it where the client reads its secrets.", err=True)
    if file:
        echo(f"Its hash is in {file}. A server that has http settings already knows it from now on.", err=True)
        return
    echo("For ~/.onetool/onetool.yaml of the server, which needs its hash alone:", err=True)
    for line in block("http", {"tokens": {name: dict(entry)}}):
        echo(line, err=True)
