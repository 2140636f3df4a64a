"""The names of clients, as they are typed."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def complete_clients(incomplete: str) -> list[str]:
    """Return the clients whose names begin like this."""
    from ot.config.clients.known_clients import CLIENTS

    return [name for name in (*CLIENTS, "all") if name.startswith(incomplete)]


def choose_clients(names: Sequence[str]) -> list[str]:
    """Return the clients of these names, each once."""
    from ot.config.clients.known_clients import CLIENTS
    from ot.nearest_names import did_you_mean

    if "all" in names:
        return list(CLIENTS)
    for name in names:
        if name not in CLIENTS:
            guess = did_you_mean(name, list(CLIENTS))
            also = f", did you mean {guess}?" if guess else f": there are {', '.join(CLIENTS)} and all"
            raise typer.BadParameter(f"the client {name!r} is not known{also}")
    return list(dict.fromkeys(names))
