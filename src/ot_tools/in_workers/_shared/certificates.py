"""Trusted CA certificates: those that the environment names, or the default ones."""

from __future__ import annotations

import os
import ssl
from functools import cache
from pathlib import Path

import httpx2

VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@cache
def certificates() -> ssl.SSLContext:
    """Return the trusted CA certificates, cached because reading them is slow.

    Raises:
        ConnectionError: The file that the environment names holds none.
    """
    file = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), "")
    try:
        if file:
            folder = Path(file).is_dir()
            return ssl.create_default_context(cafile=None if folder else file, capath=file if folder else None)
        return httpx2.create_ssl_context()
    except OSError as error:
        raise ConnectionError(f"'{file}', which the environment names, holds no certificates: {error}") from None
