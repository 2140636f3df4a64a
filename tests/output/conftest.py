"""One S3 server for the tests of this directory that do it no harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from output.s3_process import S3Process, running_s3


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Process]:
    """A server that nobody stops: whoever uses it takes a prefix of its own."""
    with running_s3() as process:
        yield process
