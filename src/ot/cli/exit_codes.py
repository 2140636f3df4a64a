"""The exit codes of every command, and which errors end with which. ``--help`` reads it, so it imports nothing."""

from __future__ import annotations

OK, FAILURE, USAGE, NOT_FOUND, DENIED, BACKEND, TIMEOUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 124, 130

MEANINGS = {
    OK: ("ok", "The command did what was asked, or found it done already."),
    FAILURE: ("failure", "Something went wrong; standard error says what, where and what to do."),
    USAGE: ("usage", "The command line is wrong; nothing was done."),
    NOT_FOUND: ("not found", "There is no such pack, tool, server, result or match."),
    DENIED: ("denied", "The policy or the user refused, or nobody was there to agree."),
    BACKEND: ("backend or network", "A server, a pack's worker, the engine or a model's service is unavailable."),
    TIMEOUT: ("timeout", "It ran past its time limit and was stopped."),
    INTERRUPTED: ("interrupted", "Ctrl-C stopped it."),
}
"""Each code in a word or two, and in a sentence."""

ERRORS = {
    "UnknownPack": NOT_FOUND,
    "UnknownTool": NOT_FOUND,
    "ResultNotFound": NOT_FOUND,
    "ResultExpired": NOT_FOUND,
    "ToolDenied": DENIED,
    "NotApproved": DENIED,
    "DefinitionChanged": DENIED,
    "CannotAsk": DENIED,
    "LoginRefused": DENIED,
    "ServerUnavailable": BACKEND,
    "LoginNeeded": BACKEND,
    "AuthServerDown": BACKEND,
    "ToolUnavailable": BACKEND,
    "LedgerUnavailable": BACKEND,
    "WorkerDied": BACKEND,
    "EngineUnavailable": BACKEND,
    "EngineCrashed": BACKEND,
    "ChatUnavailable": BACKEND,
    "RateLimited": BACKEND,
    "ToolTimeout": TIMEOUT,
    "ChatTimeout": TIMEOUT,
    "run_seconds": TIMEOUT,
}
"""Codes by the name of an error's class, or of the limit that a run used up."""


def exit_code(error: BaseException) -> int:
    """Return the code of a command that ends with *error*."""
    return ERRORS.get(getattr(error, "limit", "")) or ERRORS.get(type(error).__name__, FAILURE)
