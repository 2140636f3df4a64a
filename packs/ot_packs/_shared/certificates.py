"""Trusted CA certificates: those that the environment names, or the default ones."""

from __future__ import annotations

import os
import ssl
from functools import cache

import httpx2

from ot_sdk.network import NamedCertificates


@cache
def certificates() -> ssl.SSLContext:
    """Return the trusted CA certificates, cached because reading them is slow.

    Raises:
        ConnectionError: The file that the environment names holds none.
    """
    named = NamedCertificates.of(os.environ)
    try:
        return named.context() or httpx2.create_ssl_context(trust_env=False)
    except OSError as error:
        raise ConnectionError(f"'{named.file}', which the environment names, holds no certificates: {error}") from None
