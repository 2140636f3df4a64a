"""What earlier releases stored is read by this one; and whoever writes something new adds a sample of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs_blocks import ROOT
from stored_formats.formats import FORMATS, SAMPLES, make
from stored_formats.frozen_world import frozen
from stored_formats.listed_writers import FORMATS_OF, NOT_STORED
from stored_formats.make_samples import release
from stored_formats.stored_format import StoredFormat
from stored_formats.writers import writing_modules

MAX_BYTES = 50_000
PAGE = ROOT / "docs/reference/stored-formats.md"
KNOWN = {one.name: one for one in FORMATS}
SAMPLED = sorted(sample for sample in SAMPLES.glob("*/*") if sample.is_dir())


def named(sample: Path) -> str:
    """Return a sample's release and format."""
    return sample.relative_to(SAMPLES).as_posix()


@pytest.fixture
def copy_of(tmp_path: Path) -> Iterator[Path]:
    """A place for a copy of a sample, which its reader may change."""
    directory = tmp_path / "copy"
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def copied(sample: Path, to: Path) -> Path:
    """Return a copy of *sample* that only this user can read: version control keeps no such permissions."""
    shutil.copytree(sample, to)
    for path in (to, *to.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return to


@pytest.mark.parametrize("sample", SAMPLED, ids=named)
def test_a_sample_of_any_release_is_read_as_what_was_written(sample: Path, copy_of: Path) -> None:
    with frozen("reader"):
        assert KNOWN[sample.name].read(copied(sample, copy_of)) == KNOWN[sample.name].expected


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_what_is_written_now_is_what_the_sample_of_this_release_holds(one: StoredFormat, tmp_path: Path) -> None:
    made, kept = tmp_path / "made", SAMPLES / release() / one.name
    make(one, made)
    assert contents(made) == contents(kept), "a format has changed: run tests/stored_formats/make_samples.py"


def contents(directory: Path) -> dict[str, bytes]:
    """Return all files below *directory*, but for what an interpreter compiled of a pack."""
    files = (file for file in directory.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {file.relative_to(directory).as_posix(): file.read_bytes() for file in files}


def test_this_release_has_a_sample_of_every_format_and_none_was_dropped() -> None:
    assert {sample.name for sample in SAMPLED if sample.parent.name == release()} == KNOWN.keys()
    assert {sample.name for sample in SAMPLED} <= KNOWN.keys()


def test_samples_are_small_and_name_no_machine() -> None:
    for name, data in contents(SAMPLES).items():
        assert len(data) < MAX_BYTES, name
        assert not re.search(rb"/home/|/root/|/tmp/|/work/|/Users/", data), name


def test_every_module_that_writes_is_listed_with_its_formats_or_why_it_has_none() -> None:
    listed = {*FORMATS_OF, *NOT_STORED}
    writing = writing_modules()
    assert not writing - listed, "add these to listed_writers.py, and a sample of what they store"
    assert not listed - writing, "these write nothing any more"
    assert not FORMATS_OF.keys() & NOT_STORED.keys()


def test_every_format_has_a_module_that_writes_it() -> None:
    assert {name for names in FORMATS_OF.values() for name in names} == KNOWN.keys()


def test_the_page_has_a_row_for_every_format_and_no_other() -> None:
    rows: list[str] = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(KNOWN)
