"""A rolling restart of two replicas behind the balancers that are shipped fails no request."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread
import httpx2
import pytest

from free_ports import free_port
from http_server import MODERN, HttpServer, call
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import PATIENCE, patiently, wait_while
from team.gate import begun, told, write_gate

pytestmark = pytest.mark.anyio

DEPLOY = Path(__file__).parents[4] / "deploy"
TOKEN = new_token()
USERS = 4
NOTICE_SECONDS = {"haproxy": 3, "nginx": 0}
"""HAProxy asks each second whether a replica is ready; nginx asks nobody, and learns from answers."""
PAUSE_SECONDS = 3.0
"""What the page says to wait once a replica is ready again: longer than two checks, and than fail_timeout."""
DRAINING_REQUESTS = 40
"""So many come while the replica that ends still has a run, and would be its own if nobody sent them elsewhere."""
ENDLESS = '''"""A call that never ends."""

import time
from pathlib import Path


def begin(*, book: str) -> None:
    """Note which replica it is, and go on."""
    with Path(book).open("a") as file:
        file.write("{number}")
    time.sleep(600)
'''


@dataclass
class Balanced:
    """Two replicas behind a balancer, and what came of the requests to it."""

    root: Path
    ports: tuple[int, int]
    url: str
    notice: float
    servers: list[HttpServer] = field(default_factory=list[HttpServer])
    failed: list[str] = field(default_factory=list[str])
    answered: int = 0

    def start(self, number: int) -> HttpServer:
        """Start a replica on its port."""
        config = {
            "engines": {"use": "portable"},
            "limits": {"drain_seconds": 10},
            "http": {
                "notice_seconds": self.notice,
                "hosts": ["onetool.test"],
                "tokens": {"ann": {"hash": token_hash(TOKEN)}},
                "quotas": {"runs_per_minute": 100_000, "in_flight": 100},
            },
        }
        address, root = f"127.0.0.1:{self.ports[number]}", self.root / str(number)
        write_gate(root)
        endless = root / "home" / ".onetool" / "tools" / "endless" / "endless_tools.py"
        endless.parent.mkdir(exist_ok=True)
        endless.write_text(ENDLESS.format(number=number))
        for name in ("entered", "opened"):
            (root / "work" / name).unlink(missing_ok=True)
        return HttpServer.start(root, json.dumps(config), address=address)

    def client(self) -> httpx2.AsyncClient:
        """Return a client of the balancer."""
        headers = {**self.servers[0].headers(token=TOKEN), "host": "onetool.test"}
        return httpx2.AsyncClient(headers=headers, timeout=PATIENCE, verify=False)

    async def ask(self, most: int, ended: asyncio.Event) -> None:
        """Send one run after the other, until *most* have an answer and all has *ended*."""
        async with self.client() as client:
            while self.answered < most or not ended.is_set():
                try:
                    answer = await client.post(self.url, json=call("1 + 1"))
                    if answer.status_code != 200 or '"text":"2"' not in answer.text:
                        self.failed.append(f"{answer.status_code} {answer.text[:200]}")
                except httpx2.TransportError as error:
                    self.failed.append(repr(error))
                self.answered += 1


def haproxy(ports: tuple[int, int], port: int, root: Path) -> list[str]:
    """Return the command for HAProxy with the shipped configuration, on this machine's ports."""
    text = (DEPLOY / "haproxy.cfg").read_text()
    start, end = text.index("resolvers names"), text.index("frontend public")
    text = (text[:start] + text[end:]).replace(" init-addr libc,none resolvers names", "")
    text = text.replace("bind :8080", f"bind 127.0.0.1:{port}")
    for number, replica in enumerate(ports, 1):
        assert f"onetool-{number}:8000" in text
        text = text.replace(f"onetool-{number}:8000", f"127.0.0.1:{replica}")
    (root / "haproxy.cfg").write_text(text)
    return ["haproxy", "-db", "-f", str(root / "haproxy.cfg")]


def nginx(ports: tuple[int, int], port: int, root: Path) -> list[str]:
    """Return the command for nginx with the shipped configuration, on this machine's ports."""
    text = (DEPLOY / "nginx.conf").read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    for number, replica in enumerate(ports, 1):
        assert f"onetool-{number}:8000" in text
        text = text.replace(f"onetool-{number}:8000", f"127.0.0.1:{replica}")
    places = [f"{kind}_temp_path {root};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    text = text.replace("http {", "\n".join(["http {", "access_log off;", *places]))
    (root / "nginx.conf").write_text(f"daemon off;\npid {root}/pid;\n{text}")
    return ["nginx", "-c", str(root / "nginx.conf"), "-p", str(root), "-e", str(root / "errors")]


@contextmanager
def balanced(root: Path, name: str, command: Callable[[tuple[int, int], int, Path], list[str]]) -> Generator[Balanced]:
    """Yield two replicas behind the balancer *name*."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: .ci/system installs it")
    ports, port = (free_port(), free_port()), free_port()
    bed = Balanced(root, ports, f"http://127.0.0.1:{port}/mcp", NOTICE_SECONDS[name])
    try:
        bed.servers = [bed.start(0), bed.start(1)]
        with (root / "balancer.txt").open("wb") as said:
            balancer = subprocess.Popen(command(ports, port, root), stdout=said, stderr=said)
        try:
            wait_for(bed.url, root / "balancer.txt")
            yield bed
        finally:
            balancer.terminate()
            balancer.wait(PATIENCE)
    finally:
        for server in bed.servers:
            server.kill()


def wait_for(url: str, said: Path) -> None:
    ready, host = url.replace("/mcp", "/readyz"), {"host": "onetool.test"}
    for _ in patiently():
        try:
            if httpx2.get(ready, headers=host, timeout=PATIENCE).status_code == 200:
                return
        except httpx2.TransportError:
            pass
    raise AssertionError(said.read_text())


BALANCERS = pytest.mark.parametrize(
    ("name", "command"), [("haproxy", haproxy), ("nginx", nginx)], ids=["haproxy", "nginx"]
)


@pytest.mark.parametrize("requests", [300, pytest.param(2000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@BALANCERS
async def test_a_rolling_restart_behind_a_shipped_balancer_fails_no_request(
    name: str, command: Callable[[tuple[int, int], int, Path], list[str]], requests: int, tmp_path: Path
) -> None:
    with balanced(tmp_path, name, command) as bed:
        ended = asyncio.Event()
        users = [asyncio.ensure_future(bed.ask(requests, ended)) for _ in range(USERS)]
        try:
            for turn in range(2 if requests < 1000 else 6):
                number = turn % 2
                server, before = bed.servers[number], bed.answered
                async with server.client(token=TOKEN) as client:
                    run, opened = await begun(server, client, MODERN)
                    server.signal()
                    while bed.answered < before + DRAINING_REQUESTS:  # noqa: ASYNC110 - those of other tasks
                        await asyncio.sleep(0.01)
                    opened.touch()
                    assert (200, "through", None) == told(await run)
                assert await anyio.to_thread.run_sync(server.wait) == 0
                server.kill()  # lets go of its pipes
                bed.servers[number] = await anyio.to_thread.run_sync(bed.start, number)
                # The operator's pause, as the page says: there is nothing to wait for.
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            ended.set()
            await asyncio.gather(*users)
        assert bed.answered >= requests
        assert bed.failed == []


@BALANCERS
async def test_a_run_whose_replica_is_killed_is_not_sent_to_another(
    name: str, command: Callable[[tuple[int, int], int, Path], list[str]], tmp_path: Path
) -> None:
    book = tmp_path / "book"
    book.touch()
    with balanced(tmp_path, name, command) as bed:
        async with bed.client() as client:
            run = asyncio.ensure_future(client.post(bed.url, json=call(f"endless.begin(book={str(book)!r})")))
            await anyio.to_thread.run_sync(lambda: wait_while(lambda: None if book.read_text() else "it has not begun"))
            bed.servers[int(book.read_text())].kill()
            assert (await run).status_code == 502
        assert len(book.read_text()) == 1
