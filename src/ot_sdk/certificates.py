"""Which certificates the environment names, for the server and for packs alike."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The first that is set counts."""
FOLDER = "SSL_CERT_DIR"


class NamedCertificates(NamedTuple):
    """A file and a directory of certificates, and the variable that names the file; what is not named is empty."""

    variable: str
    file: str
    folder: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> NamedCertificates:
        """Return what *environ* names; a variable for a file may name a directory, as REQUESTS_CA_BUNDLE does."""
        name = next((name for name in FILES if environ.get(name)), "")
        file, folder = environ.get(name, ""), environ.get(FOLDER, "")
        return cls(name, "", folder or file) if file and Path(file).is_dir() else cls(name, file, folder)

    def context(self) -> ssl.SSLContext | None:
        """Return what believes these certificates; None where none are named.

        Raises:
            OSError: There is no certificate.
        """
        if not self.file and not self.folder:
            return None
        return ssl.create_default_context(cafile=self.file or None, capath=self.folder or None)
