"""The options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
TrustProject = Annotated[
    bool, typer.Option("--trust-project", help="Use the project's .onetool/ without asking: for CI.")
]
