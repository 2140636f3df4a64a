"""The options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from ot.cli.terminal.completion import complete_pack_list
from ot.config.model_providers import ProviderName

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TrustProject = Annotated[
    bool, typer.Option("--trust-project", help="Use the project's .onetool/ without asking: for CI.")
]
Provider = Annotated[ProviderName | None, typer.Option(help="Whose model answers; as chat.provider.")]
Model = Annotated[str, typer.Option(help="The model's name; as chat.model.")]
Packs = Annotated[
    str,
    typer.Option(
        help="Give the model the tools of these packs, separated by commas, instead of run.",
        autocompletion=complete_pack_list,
    ),
]
