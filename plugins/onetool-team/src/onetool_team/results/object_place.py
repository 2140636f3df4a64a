"""ObjectPlace: one object store in use, a bucket or a directory, and what its refusals mean."""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, S3Store

from ot.config.models import ObjectStorage
from ot.errors import ConfigError, ResultError, StorageFull
from ot.files.no_links import make_private

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

LOG = logging.getLogger(__name__)

REQUEST_SHARE = 0.5
"""Of the time for a result, what one request may take: two of them are in the way of a reply.

To store a result is a look whether its key is free and then the result itself; of a large one it may be the part that
fails and the attempt to take the upload back.
"""
RETRIES = 2
RETRY_SHARE = 0.1
"""Refusals that come quickly are tried again; what took longer than this share of the time is not."""

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_SYSTEM = re.compile(r"\(os error (\d+)\)")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class ObjectPlace:
    """A bucket or a directory. Every method blocks, and none for longer than the settings allow."""

    def __init__(self, settings: ObjectStorage) -> None:
        """Open the store of *settings*; nothing is asked of it yet.

        Raises:
            ConfigError: The settings do not fit together.
        """
        self._directory = _directory(settings)
        try:
            self._store = _open_store(settings, settings.seconds * REQUEST_SHARE)
        except (BaseError, OSError, ValueError) as error:
            raise ConfigError(f"output.store cannot be opened: {str(error).splitlines()[0][:200]}") from None

    def exists(self, key: str) -> bool:
        """Return whether there is an object called *key*."""
        try:
            with translate_errors():
                obstore.head(self._store, key)
        except FileNotFoundError:
            return False
        return True

    def put(self, key: str, data: bytes | bytearray) -> bool:
        """Keep *data*, and return whether the key was free."""
        try:
            with translate_errors():
                obstore.put(self._store, key, data, mode="create", use_multipart=False)
        except FileExistsError:
            return False
        return True

    def put_parts(self, key: str, parts: Any, part_bytes: int) -> None:
        """Keep an object of many *parts*, which appears when all have come."""
        with translate_errors():
            obstore.put(self._store, key, parts, use_multipart=True, chunk_size=part_bytes, max_concurrency=2)

    def end(self, key: str, length: int) -> tuple[bytes, int]:
        """Return the last *length* bytes of an object, or all where it has fewer, and its size."""
        try:
            with translate_errors():
                found = obstore.get(self._store, key, options={"range": {"suffix": length}})
                return bytes(found.bytes()), found.meta["size"]
        except ObjectStoreError as error:
            if error.errno != errno.EINVAL:
                raise
            return b"", 0  # S3 knows no range of an empty object

    def part(self, key: str, start: int, length: int) -> bytes:
        """Return some bytes of an object."""
        with translate_errors():
            return bytes(obstore.get_range(self._store, key, start=start, length=length))

    def list_objects(self, folder: str) -> Generator[Any]:
        """Yield what is known of every object in *folder*: path, size and last_modified."""
        store: Any = self._store
        with translate_errors():
            for batch in store.list(prefix=folder):
                yield from batch

    def delete(self, key: str) -> None:
        """Remove an object."""
        with translate_errors():
            obstore.delete(self._store, key)

    def remove_unfinished(self, seconds: float) -> None:
        """Remove what killed servers left in a directory that long ago; in a bucket, its own rules do it."""
        if self._directory is None:
            return
        before = time.time() - seconds
        for file in self._directory.glob("v1/*/*#*"):
            with suppress(FileNotFoundError):
                if file.stat().st_mtime < before:
                    file.unlink()


def _directory(settings: ObjectStorage) -> Path | None:
    url = urlsplit(settings.url)
    return Path(unquote(url.path)) if url.scheme == "file" else None


def _open_store(settings: ObjectStorage, seconds: float) -> LocalStore | S3Store:
    if directory := _directory(settings):
        make_private(directory)
        return LocalStore(directory, automatic_cleanup=False)
    url = urlsplit(settings.url)
    given = {
        "endpoint": settings.endpoint,
        "region": settings.region,
        "access_key_id": settings.access_key_id,
        "secret_access_key": settings.secret_access_key,
        "session_token": settings.session_token,
    }
    written: Any = {name: text for name, text in given.items() if text}
    return S3Store(
        url.netloc,
        prefix=url.path.strip("/") or None,
        config=written,
        client_options=_client(seconds, encrypted=not settings.endpoint.startswith("http://")),
        retry_config=_retries(seconds),
    )


def _client(seconds: float, *, encrypted: bool) -> ClientConfig:
    limit = timedelta(seconds=seconds)
    client: ClientConfig = {"timeout": limit, "connect_timeout": limit}
    return client if encrypted else {**client, "allow_http": True}


def _retries(seconds: float) -> RetryConfig:
    pause = timedelta(seconds=seconds * RETRY_SHARE / 4)
    return {
        "max_retries": RETRIES,
        "retry_timeout": timedelta(seconds=seconds * RETRY_SHARE),
        "backoff": {"init_backoff": pause, "max_backoff": pause, "base": 2},
    }


# ---------------------------------------------------------------- what its errors mean


class ObjectStoreError(OSError):
    """The store refused, or did not answer; ``strerror`` says it in words for anybody."""


@contextmanager
def translate_errors() -> Generator[None]:
    """Turn the library's errors into those of files: its texts name addresses and keys, which are nobody's business.

    Raises:
        FileNotFoundError: There is no such object.
        FileExistsError: There is one already.
        ObjectStoreError: Anything else.
    """
    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise ObjectStoreError(errno.EIO, "the bucket of the object store does not exist") from None
        raise FileNotFoundError(errno.ENOENT, "no such object") from None
    except BaseError as error:
        if type(error).__name__ == "AlreadyExistsError":
            raise FileExistsError(errno.EEXIST, "there is such an object") from None
        raise _explain(type(error).__name__, str(error)) from None


def _explain(kind: str, text: str) -> ObjectStoreError:
    status, code, system = (found[1] if (found := seen.search(text)) else "" for seen in (_STATUS, _CODE, _SYSTEM))
    LOG.warning("the object store: %s %s %s", kind, status or (system and f"os error {system}"), code)
    if (system and int(system) in _FULL) or status == "507" or "Full" in code or "Quota" in code:
        return ObjectStoreError(errno.ENOSPC, "the object store is full")
    if kind in ("PermissionDeniedError", "UnauthenticatedError") or status in ("401", "403"):
        return ObjectStoreError(errno.EACCES, "the object store refuses the credentials")
    if "NoSuchBucket" in text:
        return ObjectStoreError(errno.EIO, "the bucket of the object store does not exist")
    if status == "416":
        return ObjectStoreError(errno.EINVAL, "the object has no such range")
    if status:
        return ObjectStoreError(errno.EIO, f"the object store answered HTTP {status}")
    return ObjectStoreError(errno.EIO, "the object store does not answer")


@contextmanager
def not_kept() -> Generator[None]:
    """Say that a result was not kept, and why.

    Raises:
        StorageFull, ResultError: As the store's refusal is.
    """
    try:
        yield
    except ObjectStoreError as error:
        text = f"it was not kept: {error.strerror}"
        raise (StorageFull if error.errno == errno.ENOSPC else ResultError)(text) from None
