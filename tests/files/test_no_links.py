"""A project's files are reached from its directory without following a link, wherever one stands."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ot.files.no_links import READ, open_directory, open_file
from ot.files.private_file import read_regular, write_private
from ot.introspect.notify import append
from ot.output.result_files import ResultDirectory

APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's directory, with links to a directory outside at every depth."""
    outside, project = tmp_path / "outside", tmp_path / "work" / ".onetool"
    outside.mkdir()
    (project / "tmp" / "deep").mkdir(parents=True)
    (tmp_path / "work" / "linked").symlink_to(project)
    for place in (project / "logs", project / "tmp" / "d", project / "tmp" / "deep" / "d"):
        place.symlink_to(outside)
    return project


WAYS = ["logs/x", "logs/sub/x", "tmp/d/x", "tmp/d/sub/x", "tmp/deep/d/x"]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_or_made_behind_a_link(project: Path, way: str) -> None:
    uses = [
        lambda: open_file(project / way, APPEND, below=project, make=True),
        lambda: open_directory(project / way, below=project, make=True),
        lambda: write_private(project / way, "x", below=project),
        lambda: append(project / way, b"x", project),
        lambda: ResultDirectory.create(project / way, project),
    ]
    for use in uses:
        with pytest.raises(OSError):
            use()
    assert list((project.parent.parent / "outside").iterdir()) == []
    assert (project.parent.parent / "outside").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_read_behind_a_link(project: Path, way: str) -> None:
    (project.parent.parent / "outside" / "sub").mkdir()
    for name in ("x", "sub/x"):
        (project.parent.parent / "outside" / name).write_text("private")
    with pytest.raises(OSError):
        read_regular(project / way, 100, follow=True, below=project)


def test_a_project_directory_that_became_a_link_is_not_followed(project: Path) -> None:
    linked = project.parent / "linked"
    with pytest.raises(OSError):
        open_directory(linked / "tmp", below=linked, make=True)


@pytest.mark.parametrize("name", ["x", "tmp/x"])
def test_a_link_in_the_files_own_place_is_not_followed(project: Path, name: str) -> None:
    (project / name).symlink_to(project.parent.parent / "outside" / "made")
    with pytest.raises(OSError):
        open_file(project / name, APPEND, below=project)
    write_private(project / name, "mine", below=project)
    assert ((project / name).is_symlink(), (project / name).read_text()) == (False, "mine")
    assert not (project.parent.parent / "outside" / "made").exists()


def test_a_file_with_a_second_name_is_not_written(project: Path) -> None:
    other = project.parent.parent / "outside" / "profile"
    other.write_text("mine\n")
    os.link(other, project / "tmp" / "x")
    with pytest.raises(OSError) as refused:
        open_file(project / "tmp" / "x", APPEND, below=project)
    assert refused.value.errno == errno.EMLINK
    assert other.read_text() == "mine\n"


def test_a_pipe_in_a_files_place_holds_nothing_up(project: Path) -> None:
    os.mkfifo(project / "tmp" / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_file(project / "tmp" / "pipe", READ, below=project)


def test_a_path_that_leads_out_and_in_again_is_refused(project: Path) -> None:
    with pytest.raises(OSError, match=r"'\.\.'"):
        open_directory(project / ".." / ".." / "outside", below=project)


def test_what_is_really_there_is_made_private_and_used(project: Path) -> None:
    fd = open_file(project / "stats" / "a" / "b", APPEND, below=project, make=True)
    os.write(fd, b"here")
    os.close(fd)
    assert (project / "stats" / "a" / "b").read_bytes() == b"here"
    assert (project / "stats" / "a").stat().st_mode & 0o777 == 0o700
