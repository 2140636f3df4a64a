"""onetool config: about the configuration itself."""

from __future__ import annotations

import json

from ot.cli.terminal import echo


def schema() -> None:
    """Print the JSON schema of onetool.yaml, for editors."""
    from ot.config.new_directory import json_schema

    echo(json.dumps(json_schema(), indent=2))
