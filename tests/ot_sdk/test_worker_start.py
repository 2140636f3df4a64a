"""How a worker begins: the pack, its settings, its secrets."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from worker_client import PACKS, Failed, NewWorker, WorkerClient, WritePack

from ot_sdk import wire

CANARY = "canary-5f0c9d"


def refused(worker: WorkerClient, file: Path, /, **params: Any) -> Failed:
    """Return why the worker would not load the pack; it must then end by itself."""
    with pytest.raises(Failed) as caught:
        worker.init(file, **params)
    assert wire.START_FAILED == caught.value.code
    assert 3 == worker.wait()
    return caught.value


def test_a_worker_that_is_ready_says_what_it_is(new_worker: NewWorker) -> None:
    worker = new_worker()
    ready = worker.init(PACKS / "mixed_tools.py")
    assert wire.PROTOCOL == ready["protocol"]
    assert worker.process.pid == ready["pid"]
    assert ".".join(map(str, sys.version_info[:3])) == ready["python"]


def test_the_tools_are_the_names_in_all(new_worker: NewWorker) -> None:
    tools = new_worker().init(PACKS / "mixed_tools.py")["tools"]
    assert {"aecho", "echo", "forever"} <= set(tools)
    assert "not_a_tool" not in tools


def test_without_all_the_tools_are_the_public_functions_that_the_file_defines(
    new_worker: NewWorker, write_pack: WritePack
) -> None:
    source = """
        from functools import lru_cache
        from os.path import join

        class Thing: ...
        VALUE = 1
        thing = Thing()
        def first(): return _private()
        def _private(): return "value"
        @lru_cache
        def second(): return 2
        async def third(): return 3
    """
    worker = new_worker()
    assert ["first", "second", "third"] == worker.init(write_pack(source))["tools"]
    assert ["value", 2, 3] == [worker.call(tool) for tool in ("first", "second", "third")]


def test_the_pack_is_imported_under_its_name_with_its_directory_first(
    new_worker: NewWorker, write_pack: WritePack
) -> None:
    file = write_pack("""
        import sys, threading
        import neighbour
        thread = threading.current_thread() is threading.main_thread()
        def where(): return [__name__, sys.modules[__name__].__file__, sys.path[0], neighbour.VALUE, thread]
    """)
    (file.parent / "neighbour.py").write_text("VALUE = 'beside'")
    worker = new_worker()
    worker.init(file)
    assert ["trial_tools", str(file), str(file.parent), "beside", True] == worker.call("where")


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError", "No module named 'no_such_module'"),
        ("def broken(:", "SyntaxError", "invalid syntax"),
        ("raise RuntimeError('at import')", "RuntimeError", "at import"),
        ("import sys; sys.exit(0)", "SystemExit", "0"),
        ("__all__ = ['missing']", "PackError", "__all__ names 'missing'"),
        ("__all__ = ['Thing']\nclass Thing: ...", "PackError", "__all__ names 'Thing'"),
    ],
)
def test_a_pack_that_cannot_be_imported_is_refused_with_its_error(
    new_worker: NewWorker, write_pack: WritePack, source: str, kind: str, message: str
) -> None:
    error = refused(new_worker(), write_pack(source))
    assert kind == error.kind
    assert message in error.message


def test_an_import_error_shows_the_packs_own_frames(new_worker: NewWorker, write_pack: WritePack) -> None:
    error = refused(new_worker(), write_pack("def inner():\n    1 / 0\n\ninner()"))
    assert "in inner" in error.traceback
    assert "trial_tools.py" in error.traceback
    assert "worker_loop" not in error.traceback


def test_a_file_that_is_not_there_is_refused(new_worker: NewWorker, tmp_path: Path) -> None:
    assert "FileNotFoundError" == refused(new_worker(), tmp_path / "gone_tools.py").kind


def test_another_protocol_is_refused(new_worker: NewWorker, write_pack: WritePack) -> None:
    error = refused(new_worker(), write_pack("def tool(): ..."), protocol=99)
    assert "ProtocolMismatch" == error.kind
    assert "the server speaks protocol 99, this worker protocol 1" in error.message


@pytest.mark.parametrize("params", [{"file": None}, {"settings": []}, {"threads": "many"}, {"serial": 1}])
def test_a_malformed_init_is_refused(new_worker: NewWorker, write_pack: WritePack, params: dict[str, Any]) -> None:
    error = refused(new_worker(), write_pack("def tool(): ..."), **params)
    assert f"init: {next(iter(params))} is missing or of the wrong type" == error.message


def test_a_second_init_and_a_call_before_the_first_are_refused(new_worker: NewWorker) -> None:
    worker = new_worker()
    with pytest.raises(Failed, match="'echo' is not in pack"):
        worker.call("echo", value=1)
    worker.init(PACKS / "plain_tools.py")
    with pytest.raises(Failed) as caught:
        worker.init(PACKS / "plain_tools.py")
    assert wire.METHOD_NOT_FOUND == caught.value.code
    assert 1 == worker.call("echo", value=1)


def test_the_end_of_the_input_ends_a_worker_that_is_still_importing(
    new_worker: NewWorker, write_pack: WritePack, tmp_path: Path
) -> None:
    worker = new_worker()
    file = write_pack("print('importing', flush=True)\nwhile True: pass")
    worker.request("init", {"protocol": 1, "pack": "trial", "file": str(file), "directory": str(file.parent)})
    while "importing" not in worker.errors.decode():
        os.sched_yield()
    assert 0 == worker.end()


# ---------------------------------------------------------------- settings

SETTINGS = """
    from dataclasses import dataclass
    from typing import Literal
    import ot_sdk

    @dataclass(frozen=True)
    class Config:
        timeout: float
        mode: Literal["fast", "slow"] = "fast"

    def read():
        return ot_sdk.config()
"""


def test_settings_become_the_packs_config(new_worker: NewWorker, write_pack: WritePack) -> None:
    worker = new_worker()
    worker.init(write_pack(SETTINGS), settings={"timeout": 3})
    assert {"timeout": 3.0, "mode": "fast"} == worker.call("read")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "tools.trial.timeout: is missing, and has no default"),
        ({"timeot": 1}, "tools.trial.timeot: there is no such key; did you mean 'timeout'?"),
        ({"timeout": "1"}, "tools.trial.timeout: expected float, not str"),
        ({"timeout": 1, "mode": "medium"}, "tools.trial.mode: expected 'fast' or 'slow', not 'medium'"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_key(
    new_worker: NewWorker, write_pack: WritePack, settings: dict[str, Any], message: str
) -> None:
    error = refused(new_worker(), write_pack(SETTINGS), settings=settings)
    assert ("SettingsError", message) == (error.kind, error.message)


def test_settings_for_a_pack_that_takes_none_are_refused(new_worker: NewWorker, write_pack: WritePack) -> None:
    error = refused(new_worker(), write_pack("def tool(): ..."), settings={"a": 1})
    assert "pack 'trial' takes no settings: its file has no dataclass named Config" in error.message
    error = refused(new_worker(), write_pack("class Config: ...\ndef tool(): ..."), settings={"a": 1})
    assert "its class Config is not a dataclass" in error.message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import ot_sdk\ndef tool(): return ot_sdk.config()", "give it a dataclass named Config"),
        (
            """
            from dataclasses import dataclass
            import ot_sdk
            @dataclass
            class Config: ...
            try: ot_sdk.config()
            except ot_sdk.NoConfig as caught: error = caught
            def tool(): raise error
            """,
            "call ot_sdk.config\\(\\) inside a tool",
        ),
    ],
)
def test_asking_for_settings_that_are_not_there_says_what_to_do(
    new_worker: NewWorker, write_pack: WritePack, source: str, message: str
) -> None:
    worker = new_worker()
    worker.init(write_pack(source))
    with pytest.raises(Failed, match=message):
        worker.call("tool")


# ---------------------------------------------------------------- secrets

SECRETS = """
    import json, os, sys
    import ot_sdk

    __ot_requires__ = {"secrets": ["TOKEN"]}
    AT_IMPORT = ot_sdk.secret("TOKEN").reveal()[:6]

    def prefix(): return AT_IMPORT
    def shown():
        token = ot_sdk.secret("TOKEN")
        return [str(token), repr(token), f"{token}", f"{token:>20}", "%s" % token]
    def returned(): return {"token " + ot_sdk.secret("TOKEN").reveal(): [ot_sdk.secret("TOKEN").reveal().encode()]}
    def printed(): print("it is", ot_sdk.secret("TOKEN").reveal())
    def logged():
        ot_sdk.log(ot_sdk.secret("TOKEN").reveal(), field=ot_sdk.secret("TOKEN").reveal())
        ot_sdk.progress(1, message=ot_sdk.secret("TOKEN").reveal())
    def raised(): raise ValueError(ot_sdk.secret("TOKEN").reveal())
    def spooled(): return "-" * 100_000 + ot_sdk.secret("TOKEN").reveal()
    def object(): return ot_sdk.secret("TOKEN")
    def dumped(): return json.dumps(ot_sdk.secret("TOKEN"))
    def other(): return ot_sdk.secret("OTHER")
    def surroundings(): return repr(dict(os.environ)) + repr(sys.argv)
"""


@pytest.fixture
def secretive(new_worker: NewWorker, write_pack: WritePack, tmp_path: Path) -> WorkerClient:
    """A worker whose pack has one secret."""
    worker = new_worker()
    worker.init(write_pack(SECRETS), secrets={"TOKEN": CANARY}, spool=str(tmp_path), spool_above=10_000)
    return worker


def test_a_secret_can_be_revealed_already_at_import(secretive: WorkerClient) -> None:
    assert "canary" == secretive.call("prefix")


def test_a_secret_does_not_show_itself(secretive: WorkerClient) -> None:
    assert ["Secret('***')"] * 5 == secretive.call("shown")
    with pytest.raises(Failed, match="Secret is not plain data"):
        secretive.call("object")
    with pytest.raises(Failed, match="not JSON serializable"):
        secretive.call("dumped")


def test_a_revealed_secret_does_not_leave_the_worker(secretive: WorkerClient, tmp_path: Path) -> None:
    assert {"token [secret:TOKEN]": [b"[secret:TOKEN]"]} == secretive.call("returned")
    secretive.call("printed")
    secretive.call("logged")
    with pytest.raises(Failed) as caught:
        secretive.call("raised")
    assert "[secret:TOKEN]" == caught.value.message
    assert "[secret:TOKEN]" in caught.value.traceback
    spooled = secretive.begin("spooled").reply()["spooled"]
    assert (tmp_path / spooled["name"]).read_text().endswith("-[secret:TOKEN]")
    assert CANARY not in caught.value.traceback + repr(secretive.notes) + secretive.call("surroundings")
    assert 4 == repr(secretive.notes).count("[secret:TOKEN]")


def test_a_secret_that_was_not_given_names_the_line_to_add(secretive: WorkerClient) -> None:
    with pytest.raises(Failed) as caught:
        secretive.call("other")
    assert "SecretNotGranted" == caught.value.kind
    assert '__ot_requires__ = {"secrets": ["OTHER"]}' in caught.value.message
