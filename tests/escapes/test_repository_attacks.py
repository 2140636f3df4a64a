"""Hostile repositories do nothing to whoever stands in them; the harness would see an effect of every kind."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from escapes.attack_signs import effects_of, picture_of
from escapes.attacked_home import CANARY, AttackedHome, memory_of
from escapes.hostile_files import journal_that_removes
from escapes.repository_attack import WORKERS, Attack, repository_attacks
from ot.config.clients.known_clients import CLIENTS
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


NAMED = {"settings", "links", "names", "encodings", "client files", "secrets", "includes", "snippets", "aliases"}
OF_TOOLS = {"git", "patches", "special files", "programs", "questions", "races", WORKERS}
GROUPS = NAMED | {"prompts", "topics", "stores", "statistics", "servers", "trust"} | OF_TOOLS
CALM = Attack("calm", "settings", "An honest project", "before_trust", {"README.md": "hello"}, ())

HONEST = {
    ".onetool/onetool.yaml": """\
aliases: {ls: file.list}
snippets: {hi: {body: "'hello ' + 'from a snippet'"}}
servers: {mine: {command: "@PYTHON@", args: ["@FAKE@"]}, marker: {command: /usr/bin/touch, args: ["@MARK@/server"]}}
tools: {msg: {topics: [{pattern: a, file: tmp/a.log}]}}
prompts: {packs: {file: "words of a prompt"}}
""",
    ".onetool/tools/good/good_tools.py": "def run() -> str:\n    open('@MARK@/pack', 'w')\n    return 'a good pack'\n",
    "note.txt": "a note",
}
USED = (
    "[ls(), ot.help(query='file')]",
    "$hi",
    "good.run()",
    "mine.echo(text='a word of ' + 'a server')",
    "marker.x()",
    "ot.notify(topic='a', message='m')",
)


def built(tmp_path: Path, patch: pytest.MonkeyPatch, attack: Attack = CALM) -> AttackedHome:
    return AttackedHome.build(tmp_path, attack, patch, 9)


def test_the_corpus_is_whole() -> None:
    attacks = repository_attacks()
    assert len(attacks) >= 214
    assert len({attack.id for attack in attacks}) == len(attacks)
    assert {attack.group for attack in attacks} == GROUPS
    assert min(Counter(attack.stage for attack in attacks).values()) >= 20
    commands = " ".join(step for attack in attacks for step in attack.steps if isinstance(step, str))
    assert [client for client in CLIENTS if f"--from {client} " not in f"{commands} "] == []


def test_what_an_honest_project_brings_works_once_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = built(tmp_path, monkeypatch, replace(CALM, files=HONEST))
    for code in USED:
        home.carry_out({"run": code})
    before, home.said[:] = "".join(home.said), []
    assert home.marks == []
    home.carry_out("trust --yes")
    for code in USED:
        home.carry_out({"run": code})
    after = "".join(home.said)
    for words in ("note.txt", "words of a prompt", "hello from a snippet", "a good pack", "a word of a server"):
        assert words in after
        assert words not in before
    assert home.marks == ["pack", "server"]
    assert "message: |-\n  m" in (home.house.project / "tmp" / "a.log").read_text()
    assert home.broke == []


def test_nothing_is_seen_where_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = built(tmp_path, monkeypatch)
    before = picture_of(tmp_path, CALM)
    home.carry_out({"run": "'calm'"})
    home.carry_out("allow file.read")
    assert any("calm" in text for text in home.said)
    assert effects_of(replace(CALM, asked={"allow": ["file.read"]}), home, before) == []


def _hang(home: AttackedHome) -> None:
    os.mkfifo(home.house.cwd / "pipe")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("escapes.attacked_home.LONGEST_SECONDS", 0.5)
        home.carry_out("run --file pipe")


def _write(place: str, text: str = "x") -> Callable[[AttackedHome], None]:
    def write(home: AttackedHome) -> None:
        path = home.house.home.parent / place
        path.parent.mkdir(exist_ok=True, parents=True)
        with path.open("a") as file:
            file.write(text)

    return write


DEEDS: dict[str, tuple[Callable[[AttackedHome], object], Attack, str]] = {
    "code": (_write("mark/x"), CALM, "code ran: x"),
    "a new file": (_write("home/.profile"), CALM, "home/.profile was made"),
    "a changed file": (_write("home/.bash_profile"), CALM, "home/.bash_profile was changed"),
    "a removed file": (lambda home: (home.house.home / ".bash_profile").unlink(), CALM, "home/.bash_profile is gone"),
    "a mode": (lambda home: (home.house.outside / "www").chmod(0o700), CALM, "outside/www was changed"),
    "a pack of the user's": (_write("home/.onetool/tools/a/a_tools.py"), CALM, "home/.onetool/tools was made"),
    "settings": (_write("home/.onetool/onetool.yaml", "docs_url: x\n"), CALM, "home/.onetool/onetool.yaml was changed"),
    "more settings than asked for": (
        _write("home/.onetool/onetool.yaml", "docs_url: x\n"),
        replace(CALM, asked={"servers": ["a"]}), "the user's configuration became",
    ),
    "a secret on the screen": (lambda home: home.said.append(f"a {CANARY}-env"), CALM, "a secret was shown"),
    "a secret in the project": (_write("work/x", f"{CANARY}-aws"), CALM, "a secret is in the project's x"),
    "an escape sequence": (lambda home: home.said.append("\x1b]52;c;x\x07"), CALM, "raw '\\x1b'"),
    "turned text": (lambda home: home.said.append("\u202e"), CALM, "raw '\\u202e'"),
    "trust": (lambda home: home.carry_out("init"), CALM, "the project is trusted"),
    "a traceback": (lambda home: home.carry_out({"asked": 1}), CALM, "ended with a traceback"),
    "something hidden": (lambda home: None, replace(CALM, must_show=["words"]), "not shown: 'words'"),
    "something unsaid": (lambda home: None, replace(CALM, must_say=["wo+rds"]), "nothing says"),
    "wrong words": (lambda home: home.said.append("words"), replace(CALM, must_not_say=["words"]), "said: 'words'"),
    "a wrong file": (_write("work/a/b", "words"), replace(CALM, must_not_hold={"a": "words"}), "holds 'words'"),
    "a hang": (_hang, CALM, "did not end"),
}  # fmt: skip


@pytest.mark.parametrize("deed", DEEDS)
def test_every_sign_is_seen_when_it_happens(deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act, attack, sign = DEEDS[deed]
    home = built(tmp_path, monkeypatch)
    before = picture_of(tmp_path, attack)
    act(home)
    assert sign in "\n".join(effects_of(attack, home, before))


def test_a_secret_sent_to_the_network_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = built(tmp_path, monkeypatch)
    before = picture_of(tmp_path, CALM)
    attack = replace(CALM, must_not_send=["words"])
    assert effects_of(attack, home, before, f"words and {CANARY}-env") == [
        f"a secret was received: words and {CANARY}-env",
        "sent: words",
    ]


def test_the_journal_of_the_attacks_removes_a_file_where_it_is_opened(tmp_path: Path) -> None:
    """The control of the attacks by statistics: SQLite obeys it, wherever OneTool does not keep it from it."""
    target = tmp_path / ".bash_profile"
    target.write_text("export A=1\n")
    journal_that_removes(tmp_path / "stats.db", lambda text: text.replace("@HOME@", str(tmp_path)))
    with closing(sqlite3.connect(tmp_path / "stats.db")) as connection:
        connection.execute("SELECT * FROM run_sums").fetchall()
    assert not target.exists()
