"""The presets: vendors' own servers, as data in a file of this package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ot.cli.adding import ServerToAdd
from ot.cli.terminal import columns, echo, echo_either
from ot.nearest_names import listing

FILE = Path(__file__).with_name("presets.yaml")
LOGINS = ("oauth", "client")
WORDS = {
    "oauth": "login in the browser",
    "client": "login with an app of your own",
    "token": "a token of yours",
    "none": "nothing needed",
}


def presets() -> Mapping[str, Mapping[str, Any]]:
    """Return all presets by name."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def preset_server(preset: str, name: str) -> ServerToAdd:
    """Return the server of a preset, under this *name*, or raise ValueError if there is none."""
    known = presets()
    if preset not in known:
        raise ValueError(f"there is no preset '{preset}'. Presets: {listing(preset, list(known))}")
    found = known[preset]
    return ServerToAdd(name, found["entry"], tuple(_advice(name, found)), login=found["auth"] in LOGINS)


def _advice(name: str, found: Mapping[str, Any]) -> list[str]:
    from ot.config.setting_types import pack_name

    needs: Mapping[str, str] = found.get("needs", {})
    lines = [f"It needs the secret {secret}: {where}" for secret, where in needs.items()]
    if patterns := [f"'{pack_name(name)}.{pattern}'" for pattern in found.get("read_only") or ()]:
        lines.append(f"Tools that only read can run without a question: onetool allow {' '.join(patterns)}")
    return [*lines, f"About it: {found['page']}"]


def list_presets(as_json: bool) -> None:
    """Print all presets."""
    known = presets()
    rows = [(f"preset:{name}", WORDS[found["auth"]], found["about"]) for name, found in known.items()]
    empty: dict[str, Any] = {"scopes": [], "needs": {}, "read_only": []}
    plain = [{"name": name, **empty, **found} for name, found in known.items()]
    echo_either(as_json, plain, columns(rows))
    if not as_json:
        echo("Next: onetool add preset:NAME", err=True)
