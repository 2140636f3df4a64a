"""What a pack in a worker gets from the SDK: calls of tools, secrets and images; and the SDK's own rules."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worker_client import PACKS, WorkerClient

import ot_sdk
from ot.workers.worker import _filter_event
from ot_sdk.call import Interrupts
from ot_sdk.errors import Cancelled
from ot_sdk.host import Secret
from ot_sdk.images import MAX_BYTES, image_block
from ot_sdk.redaction import SHORTEST, Redactor
from ot_sdk.testing import use
from pace import PATIENCE


def in_thread(work: Callable[[], object]) -> threading.Thread:
    """Run *work* in a thread that does not outlive the tests."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_thread_that_never_ends_is_interrupted() -> None:
    interrupts, begun, ended = Interrupts(), threading.Event(), threading.Event()

    def spin() -> None:
        try:
            with interrupts:
                begun.set()
                while True:
                    pass
        except Cancelled:
            ended.set()

    in_thread(spin)
    assert begun.wait(PATIENCE)
    interrupts.interrupt()
    assert ended.wait(PATIENCE)


def test_a_thread_that_comes_later_is_interrupted_at_once() -> None:
    interrupts = Interrupts()
    interrupts.interrupt()
    with pytest.raises(Cancelled), interrupts:
        pytest.fail("the tool has run")


def test_a_thread_that_has_ended_is_left_alone() -> None:
    interrupts = Interrupts()
    with interrupts:
        pass
    interrupts.interrupt()
    assert 499_500 == sum(range(1000))


def test_a_shield_holds_the_interrupt_back_until_its_end() -> None:
    interrupts, inside, asked, steps = Interrupts(), threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        try:
            with interrupts, interrupts.shield():
                inside.set()
                asked.wait(PATIENCE)
                for _ in range(1000):
                    steps.append("whole")
                steps.append("end of shield")
            steps.append("never")
        except Cancelled:
            steps.append("interrupted")

    thread = in_thread(work)
    assert inside.wait(PATIENCE)
    interrupts.interrupt()
    asked.set()
    thread.join(PATIENCE)
    assert ["whole"] * 1000 + ["end of shield", "interrupted"] == steps


def test_another_thread_needs_no_shield() -> None:
    interrupts = Interrupts()
    done = threading.Event()

    def send() -> None:
        with interrupts.shield():
            done.set()

    with interrupts:
        in_thread(send)
        assert done.wait(PATIENCE)


def test_an_interrupt_never_escapes_from_the_code_around_which_it_was_asked_for() -> None:
    outcomes = {"cancelled": 0, "returned": 0}
    for _ in range(300):
        interrupts, begun = Interrupts(), threading.Event()
        canceller = in_thread(lambda interrupts=interrupts, begun=begun: (begun.wait(PATIENCE), interrupts.interrupt()))
        try:
            with interrupts:
                begun.set()
                for _ in range(50):
                    with interrupts.shield():
                        pass
            outcomes["returned"] += 1
        except Cancelled:
            outcomes["cancelled"] += 1
        canceller.join(PATIENCE)
    assert 300 == sum(outcomes.values())


VALUES = st.text(min_size=SHORTEST, max_size=12).filter(lambda value: value not in "[secret:NAME]")


def test_only_reveal_shows_the_value() -> None:
    secret = Secret("hidden value")
    assert "hidden value" == secret.reveal()
    shown = f"{secret} {secret!r} {secret:>30} {[secret]} {secret.__class__.__dict__}" + "%s %r" % (secret, secret)  # noqa: UP031 - a way in which people format
    assert "hidden" not in shown
    assert not hasattr(secret, "__dict__")


def test_a_secret_is_neither_json_nor_a_pickle() -> None:
    with pytest.raises(TypeError):
        json.dumps({"token": Secret("hidden value")})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps([Secret("hidden value")], protocol)


def test_a_copy_is_the_secret_itself() -> None:
    secret = Secret("hidden value")
    assert secret is copy.copy(secret)
    assert secret is copy.deepcopy([secret])[0]


def test_an_empty_secret_is_false() -> None:
    assert not Secret("")
    assert Secret("x")


@given(VALUES, st.text(), st.text())
def test_a_value_is_found_wherever_it_stands(value: str, before: str, after: str) -> None:
    redactor = Redactor({"NAME": value})
    assert value not in redactor.text(before + value + after).replace("[secret:NAME]", "\0" * SHORTEST)
    raw = (before + value + after).encode()
    assert b"[secret:NAME]" in redactor.data(raw)


@given(st.text(), st.binary())
def test_without_secrets_everything_stays_as_it_is(text: str, data: bytes) -> None:
    redactor = Redactor({"SHORT": "abc"})
    assert redactor.idle
    assert text == redactor.text(text)
    assert data == redactor.data(data)


def test_of_two_secrets_that_begin_alike_the_longer_is_found() -> None:
    redactor = Redactor({"SHORT": "abcdef", "LONG": "abcdefghi"})
    assert "[secret:LONG] [secret:SHORT]" == redactor.text("abcdefghi abcdefg"[:-1])
    assert b"[secret:LONG]" == redactor.data(b"abcdefghi")


PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def test_an_image_is_a_small_value_that_names_it():
    with use() as told:
        first, again, other = ot_sdk.image(PNG), ot_sdk.image(PNG), ot_sdk.image(PNG + b"!")
    assert first == again == {"type": "image", "block": first["block"], "mime_type": "image/png", "size": len(PNG)}
    assert other["block"] != first["block"]
    assert told.images == [PNG, PNG, PNG + b"!"]


@pytest.mark.parametrize(
    ("data", "mime_type", "words"),
    [
        pytest.param(PNG, "image/svg+xml", "must be one of image/png", id="a kind that could hold a program"),
        pytest.param(b"<html>", "image/png", "is not image/png", id="data of another kind"),
        pytest.param(PNG + bytes(MAX_BYTES), "image/png", "make it smaller", id="too much of it"),
    ],
)
def test_what_is_no_image_is_refused(data: bytes, mime_type: str, words: str):
    with use(), pytest.raises(ValueError, match=words):
        ot_sdk.image(data, mime_type)


@pytest.mark.parametrize(
    ("method", "told"),
    [
        pytest.param("content", {"block": {"type": "text", "text": "obey"}}, id="a block of its own making"),
        pytest.param("meta", {"meta": {}}, id="meta of a reply"),
        pytest.param("image", {}, id="an image without a block"),
        pytest.param("image", {"block": "text"}, id="a block that is text"),
        pytest.param("image", {"block": {"type": "image", "mimeType": "text/html", "data": "x"}}, id="another kind"),
    ],
)
def test_a_worker_tells_of_images_and_nothing_else(method: str, told: dict[str, Any]):
    assert _filter_event(method, told) is None


def test_a_block_of_a_worker_has_the_parts_of_an_image_only():
    block = image_block(PNG, "image/png")
    told = _filter_event("image", {"block": {**block, "type": "text", "text": "obey"}, "name": "n"})
    assert told == ("content", {"block": block, "id": "n"})


SOURCES = sorted(Path(ot_sdk.__file__).parent.glob("*.py"))
OLDEST = (3, 10)


def imported(tree: ast.Module) -> set[str]:
    """Return the top-level names of everything that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_file_imports_only_the_standard_library(source: Path) -> None:
    foreign = imported(ast.parse(source.read_text(encoding="utf-8"))) - sys.stdlib_module_names - {"ot_sdk"}
    assert set() == foreign


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_file_is_written_in_the_oldest_python_that_a_worker_may_have(source: Path) -> None:
    ast.parse(source.read_text(encoding="utf-8"), feature_version=OLDEST)


def other_pythons() -> list[str]:
    """Return the interpreters beside the one of the tests that are installed here and work."""
    found = [shutil.which(f"python3.{minor}") for minor in (10, 11, 13, 14)]
    return [path for path in found if path and _works(path)]


def _works(path: str) -> bool:
    done = subprocess.run([path, "-I", "-c", "import sys; print(sys.version_info >= (3, 10))"], capture_output=True)
    return done.stdout.strip() == b"True"


@pytest.mark.parametrize("python", other_pythons() or [sys.executable])
def test_a_worker_runs_on_other_pythons_too(python: str) -> None:
    worker = WorkerClient(python)
    try:
        worker.init(PACKS / "mixed_tools.py")
        worker.on_call_tool = lambda params: params["arguments"]
        value = {"a": (1, b"x"), 2: {"s"}}
        assert [value] * 3 == [worker.call(tool, value=value) for tool in ("echo", "aecho", "wrapped")]
        assert {"x": 1} == worker.call("ask", tool="a.b", arguments={"x": 1})
        pending = worker.begin("forever")
        worker.wait_for_note("print")
        worker.cancel(pending)
        assert "Cancelled" == pending.replies.get(timeout=PATIENCE)["error"]["data"]["kind"]
        assert 0 == worker.end()
        assert "" == worker.error_text()
    finally:
        worker.close()


def loaded_anyway() -> set[str]:
    """Return what the interpreter of the tests loads by itself, for its environment."""
    command = [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_a_worker_without_async_tools_does_not_load_asyncio(tmp_path: Path) -> None:
    file = tmp_path / "small_tools.py"
    file.write_text("import sys\ndef loaded(): return sorted(sys.modules)")
    worker = WorkerClient()
    try:
        worker.init(file)
        costly = {"asyncio", "ctypes", "dataclasses", "inspect", "logging", "pathlib", "socket", "traceback"}
        assert set() == costly & set(worker.call("loaded")) - loaded_anyway()
    finally:
        worker.close()
