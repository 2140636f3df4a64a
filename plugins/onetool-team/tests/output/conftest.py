"""One S3 server for the tests of a file that do it no harm; it ends with them: others count the processes here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from output.s3_process import S3Process, running_s3


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Process]:
    """A server that nobody stops: whoever uses it takes a prefix of its own."""
    with running_s3() as process:
        yield process
