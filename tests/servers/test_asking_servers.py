"""That a server asks its client something is remembered, here and beyond the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.registry.proxy_target import ServerIdentity
from ot.servers.asking_servers import AskingServers

ASKING, SILENT = ServerIdentity("s", "1"), ServerIdentity("s", "2")


def test_a_server_that_asked_is_known_to_the_next_process_and_another_of_its_name_is_not(tmp_path: Path) -> None:
    known = AskingServers(tmp_path / "servers")
    assert not known.holds(ASKING)
    known.note(ASKING)
    known.note(ASKING)
    assert known.count == 1
    for again in (known, AskingServers(tmp_path / "servers")):
        assert (again.holds(ASKING), again.holds(SILENT)) == (True, False)


def test_what_cannot_be_written_is_known_as_long_as_the_process_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "servers").write_text("a file")
    known = AskingServers(tmp_path / "servers")
    known.note(ASKING)
    assert known.holds(ASKING)
    assert "could not be remembered" in caplog.text
