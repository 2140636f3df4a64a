"""What ``onetool --help`` prints: commands by group, written from their table without any library."""

from __future__ import annotations

from ot.cli.command_table import EVERYDAY, SUMMARY, all_commands
from ot.cli.exit_codes import MEANINGS

OPTIONS = (
    ("--version", "Show the version and exit."),
    ("--install-completion", "Complete commands and names in this shell from now on."),
    ("--show-completion", "Print the completion script instead of installing it."),
    ("--all", "Show every command, not only the everyday ones."),
    ("--help", "Show this message and exit."),
)
EXAMPLE = "onetool run 'ot.help()'"
WIDTH = 78


def overview(*, every: bool = False) -> str:
    """Return the page with the everyday commands, or with *every* one; no line is longer than 80 columns."""
    parts = ["Usage: onetool [OPTIONS] COMMAND [ARGS]...\n", f"  {SUMMARY}\n"]
    commands = all_commands()
    shown = {
        group: [(name, summary) for name, _, summary, _ in rows if every or name in EVERYDAY]
        for group, rows in commands.items()
    }
    width = max(len(name) for rows in shown.values() for name, _ in rows)
    parts += [_section(group, rows, width) for group, rows in shown.items() if rows]
    if not every:
        parts.append(f"All {sum(map(len, commands.values()))} commands: onetool --help --all\n")
    parts.append(_section("Options", OPTIONS, max(len(name) for name, _ in OPTIONS)))
    parts.append("Every command has --json and explains itself: onetool COMMAND --help\n")
    parts += [_wrap_words("Exit codes:", [f"{code} {word}" for code, (word, _) in MEANINGS.items()])]
    return "\n".join([*parts, f"Example: {EXAMPLE}\n"])


def _section(title: str, rows: list[tuple[str, str]] | tuple[tuple[str, str], ...], width: int) -> str:
    return "".join([f"{title}:\n", *(f"  {name.ljust(width)}  {text}\n" for name, text in rows)])


def _wrap_words(start: str, words: list[str]) -> str:
    """Return *words* after *start*, divided by commas, on lines that are not too long."""
    lines = [start]
    for place, word in enumerate(words, 1):
        shown = f" {word}{',' * (place < len(words))}"
        if len(lines[-1] + shown) > WIDTH:
            lines.append(" ")
        lines[-1] += shown
    return "\n".join([*lines, ""])
