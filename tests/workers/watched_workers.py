"""WatchedWorkers: a real server with extension packs, and what must hold of it after every fault (I1 to I8)."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bed import SOURCE, TESTS
from faults.watched import CONFIG, PingTooSlow, Place, Watched, start_wire
from workers.door import source_of

WORKER_SERVER = (sys.executable, str(TESTS / "workers" / "worker_server.py"))
ONETOOL = (str(Path(sys.executable).with_name("onetool")), "serve")
WORKER_CONFIG = CONFIG + "workers: {start_seconds: 2, install_seconds: 20}\n"
LONG_CONFIG = "limits: {run_seconds: 60, call_seconds: 60}\nlogs: {level: WARNING}\n"
STATE = ("tmp", "packs", "spool")


def write_pack(onetool: Path, name: str, source: str) -> Path:
    """Write a pack below a ``.onetool`` directory and return its file."""
    file = onetool / "tools" / name / f"{name}_tools.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    return file


WARM_UPS = 5


@dataclass(frozen=True)
class WorkerPlace(Place):
    """The directories of a server with extension packs."""

    @classmethod
    def furnish(cls, root: Path, config: str = WORKER_CONFIG, packs: Mapping[str, str] | None = None) -> Self:
        """Make them, with *packs* by name, or with those that are calm and faulty."""
        place = cls.make(root, config)
        for name, source in (packs or {name: source_of(name) for name in ("calm", "faulty")}).items():
            write_pack(place.home / ".onetool", name, source)
        return place

    def environment(self, **more: str) -> dict[str, str]:
        """Return what the server inherits, the machine's cache of uv included."""
        kept = {name: os.environ[name] for name in ("UV_CACHE_DIR", "SSL_CERT_FILE") if os.environ.get(name)}
        return super().environment(**kept, PYTHONPATH=f"{SOURCE}:{TESTS / 'faults'}", **more)

    def files(self) -> set[Path]:
        """Return every file outside what the server keeps."""
        kept = [self.home / ".onetool" / name for name in STATE]
        return {file for file in super().files() if not any(file.is_relative_to(place) for place in kept)}


@dataclass
class WatchedWorkers(Watched):
    """One server with two extension packs."""

    @classmethod
    @contextmanager
    def started(cls, root: Path, config: str = WORKER_CONFIG, *, crowd: int = 4) -> Generator[Self]:
        """Yield a server below *root* and end it."""
        place = WorkerPlace.furnish(root, config)
        with start_wire(place, WORKER_SERVER) as wire:
            yield cls(wire, place, crowd)

    def survive[T](self, fault: Callable[[], T]) -> T:
        """Return what *fault* returns; of three pings, each after a fault of its own, one must be in time."""
        try:
            return super().survive(fault)
        except PingTooSlow:
            return self._once(fault)

    def _warm_up(self) -> None:
        super()._warm_up()
        for pack in ("calm", "faulty"):
            # The first start may take longer than the corpora's limits allow a run, on a machine that is busy.
            said = [self.wire.run(f"{pack}.echo(nonce='x')").text]
            while said[-1] != "x" and len(said) < WARM_UPS:
                said.append(self.wire.run(f"{pack}.echo(nonce='x')").text)
            assert said[-1] == "x", said

    def _check_own_data(self) -> None:
        super()._check_own_data()
        for pack in ("calm", "faulty"):
            nonce = secrets.token_hex(8)
            assert nonce == self.wire.run(f"{pack}.echo(nonce='{nonce}')").text, "I2"

    def worker_pid(self, pack: str) -> int:
        """Return the process of the pack's worker."""
        return int(self.wire.run(f"{pack}.own_pid()").text)
