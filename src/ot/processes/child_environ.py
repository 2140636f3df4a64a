"""The environment variables that a pack's processes get: a list of those allowed, and nothing of the server's else."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import PurePath

NETWORK = frozenset(
    {
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    }
)
"""What libraries read of the process's own environment before they connect to anything."""
NAMES = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", *NETWORK})
WINDOWS_NAMES = frozenset({"SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "TEMP", "TMP"})
PREFIXES = ("LC_", "XDG_")


def worker_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of *environ* that a worker may see: no secret that the pack does not declare, nothing of uv."""
    names = NAMES | WINDOWS_NAMES if sys.platform == "win32" else NAMES
    return {name: value for name, value in environ.items() if name in names or name.startswith(PREFIXES)}


def uv_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of *environ* that uv may see: a worker's, and uv's settings, such as the index and cache."""
    return worker_environ(environ) | {name: value for name, value in environ.items() if name.startswith("UV_")}


LAUNCHERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("uv", "uvx"), ("UV_",)),
    **dict.fromkeys(("npx", "npm", "pnpm", "bunx", "node"), ("NPM_CONFIG_", "npm_config_", "NODE_EXTRA_CA_CERTS")),
}
"""Programs that fetch what they start, and the variables that name the source and the certificates to trust."""

CREDENTIAL = re.compile("AUTH|PASS|TOKEN|SECRET|USERNAME|KEY", re.IGNORECASE)


def launcher_environ(command: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the part of *environ* that tells *command* where packages come from, without credentials."""
    prefixes = LAUNCHERS.get(PurePath(command).stem, ())
    # The server itself sees them too, and an address may hold a password.
    return {
        name: value
        for name, value in environ.items()
        if prefixes and name.startswith(prefixes) and not CREDENTIAL.search(name) and "@" not in value
    }
