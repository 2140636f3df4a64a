"""An object store keeps the contract of every place for results: a directory that replicas share, and a bucket."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from onetool_team.results.object_blobs import ObjectBlobs
from onetool_team.results.object_place import ObjectPlace
from ot.config.models import ObjectStorage
from ot.output.result_blobs import ResultBlobs
from output.s3_process import S3Process
from output.store_desk import ME, PLENTY, TTL
from output.test_result_blobs import *  # noqa: F403 - the contract's tests


@pytest.fixture(params=["directory", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> ResultBlobs:
    settings = ObjectStorage(url=f"file://{tmp_path / 'tmp'}")
    if request.param == "s3":
        server: S3Process = request.getfixturevalue("s3")
        settings = server.settings(secrets.token_hex(8))
    return ObjectBlobs(ObjectPlace(settings), ME, ttl=TTL, max_total_bytes=PLENTY)
