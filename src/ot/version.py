"""The version of OneTool, as it was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the version of the distribution that this code belongs to."""
    try:
        return version("onetool-run")
    except PackageNotFoundError:
        return "0+unknown"
