"""Which certificates are trusted: those of the system, or those that the usual variables name."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from ot.servers.reply_faults import Refused

FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The first that is set counts."""
FOLDER = "SSL_CERT_DIR"


def trusted_certificates(environ: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Return what connections trust; True means what the system trusts.

    Raises:
        Refused: A variable names what is not there, or no certificate.
    """
    file = next((name for name in FILES if environ.get(name)), "")
    folder = FOLDER if environ.get(FOLDER) else ""
    if not file and not folder:
        return True
    if file and Path(environ[file]).is_dir():  # as REQUESTS_CA_BUNDLE may
        file, folder = "", file
    try:
        return ssl.create_default_context(
            cafile=environ[file] if file else None, capath=environ[folder] if folder else None
        )
    except (OSError, ssl.SSLError) as error:
        name = file or folder
        raise Refused(f"{name} names '{environ[name]}', where no certificates can be read: {error}") from None
