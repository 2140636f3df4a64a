"""Which certificates are trusted: those of the system, or those that the usual variables name."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import httpx2

from ot.servers.reply_faults import Refused

FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The first that is set counts."""
FOLDER = "SSL_CERT_DIR"


def trusted_certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return what connections trust: what the variables name, else what the system trusts.

    Raises:
        Refused: A variable names what is not there, or no certificate.
    """
    name = next((name for name in FILES if environ.get(name)), "")
    file, folder = environ.get(name, ""), environ.get(FOLDER, "")
    if file and Path(file).is_dir():  # as REQUESTS_CA_BUNDLE may
        file, folder = "", folder or file
    try:
        return _context(file, folder)
    except OSError as error:
        raise Refused(f"{name} names '{file}', where no certificates can be read: {error}") from None


@lru_cache(maxsize=4)
def _context(file: str, folder: str) -> ssl.SSLContext:
    # A tenth of a second of work, too much for every connection.
    if not file and not folder:
        return httpx2.create_ssl_context(trust_env=False)
    return ssl.create_default_context(cafile=file or None, capath=folder or None)
