"""onetool config migrate: settings in an older form, shown and rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import DENIED
from ot.cli.terminal import NOT_TRUSTED, confirm, echo, echo_either
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.config.edit_config import Edited
    from ot.config.migrations import Outdated
    from ot.config.paths import Paths

UP_TO_DATE = "Nothing to migrate: your configuration is up to date."


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before writing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite settings in an older form, after showing the difference.

    Your own configuration and that of the project in this directory are looked at, with the files that they include.
    Comments and order stay; a file is saved below ~/.onetool/backups/ before it is changed.
    """
    from ot.config.migrations import find_outdated_files
    from ot.config.paths import Paths

    paths = Paths.find()
    outdated = find_outdated_files(paths)
    if not as_json:
        echo("\n".join(_lines(outdated)) or UP_TO_DATE)
    if not outdated or dry_run:
        echo_either(as_json, {"files": [_as_json(file) for file in outdated]}, ())
        return
    if not (yes or confirm("Write this?", "write")):
        echo("Nothing was written.", err=True)
        raise typer.Exit(DENIED)
    edited = [_write(paths, file) for file in outdated]
    rows = [_as_json(file, edit) for file, edit in zip(outdated, edited, strict=True)]
    echo_either(as_json, {"files": rows}, _describe_writes(edited))


def _write(paths: Paths, file: Outdated) -> Edited:
    from ot.config.edit_config import edit_config
    from ot.config.migrations import migrate_text

    return edit_config(paths, lambda text: migrate_text(text)[0], use_global=file.of_user, name=file.name)


def _difference(file: Outdated) -> list[str]:
    old, new = file.old.text.splitlines(), file.new.text.splitlines()
    return list(unified_diff(old, new, str(file.file), str(file.file), lineterm=""))


def _lines(outdated: Sequence[Outdated]) -> Iterator[str]:
    for file in outdated:
        yield from (f"{file.file}: {step}" for step in file.steps)
        yield from _difference(file)


def _describe_writes(edited: Sequence[Edited]) -> Iterator[str]:
    for edit in edited:
        yield f"Wrote {edit.file}; as it was: {edit.backup}."
        if edit.trusted is False:
            yield NOT_TRUSTED


def _as_json(file: Outdated, edit: Edited | None = None) -> dict[str, Any]:
    written = {"backup": str(edit.backup), "trusted": edit.trusted} if edit else {}
    about = {"file": str(file.file), "steps": list(file.steps), "diff": "\n".join(_difference(file))}
    return about | {"written": edit is not None} | written
