"""The options that the commands of this plugin have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from onetool_chat.model_providers import ProviderName
from ot.cli.terminal.completion import complete_pack_list

Provider = Annotated[ProviderName | None, typer.Option(help="Whose model answers; as chat.provider.")]
Model = Annotated[str, typer.Option(help="The model's name; as chat.model.")]
Packs = Annotated[
    str,
    typer.Option(
        help="Give the model the tools of these packs, separated by commas, instead of run.",
        autocompletion=complete_pack_list,
    ),
]
