"""A cloned directory does nothing before it is trusted, reaches nothing beyond itself afterwards, and hides nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from escapes.attack_signs import effects_of, picture_of
from escapes.attacked_home import AttackedHome, memory_of
from escapes.repository_attack import WORKERS, Attack, repository_attacks
from pace import PATIENCE, effort


class Ear(ThreadingHTTPServer):
    """A server on this machine that keeps all that it is sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.heard: list[str] = []


class _Request(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Ear)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode(errors="replace")
        self.server.heard.append(f"{self.path}\n{self.headers}\n{body}")
        self.send_error(404)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def ear() -> Iterator[Ear]:
    """The place that stolen secrets would be sent to."""
    with Ear() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE)


def parameters() -> list[object]:
    return [
        pytest.param(attack, id=attack.label, marks=pytest.mark.soak if attack.group == WORKERS else ())
        for attack in repository_attacks()
    ]


@pytest.mark.parametrize("attack", parameters())
def test_a_repository_s_attack_comes_to_nothing(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ear: Ear
) -> None:
    ear.heard.clear()
    home = AttackedHome.build(tmp_path, attack, monkeypatch, ear.server_port)
    before = picture_of(tmp_path, attack)
    with effort() as spent, memory_of(attack.memory_mb):
        for step in attack.steps:
            home.carry_out(step)
    found = effects_of(attack, home, before, "\n".join(ear.heard))
    found += [f"it computed as long as {spent.loops:.0f} loops"] if 0 < 400 * attack.cpu_seconds < spent.loops else []
    assert found == [], f"{attack.title}: {found}"
