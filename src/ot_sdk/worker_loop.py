"""The worker: reads requests in a thread of its own, lets tools run, and answers every call exactly once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue
from typing import Any, NoReturn, cast

from ot_sdk import host, wire
from ot_sdk.call import Call, CallOutput, PrintBuffer, current_call, send_for_pack
from ot_sdk.errors import InvalidArguments, UnknownTool
from ot_sdk.pack import PackStart, build_config, import_pack, is_async, read_start, tools_of
from ot_sdk.redaction import Redactor
from ot_sdk.replies import Replies, Spool, failure
from ot_sdk.runners import CallRunner, LoopRunner, ThreadRunner, Turns
from ot_sdk.wire import EXIT_OK, EXIT_START_FAILED, EXIT_WIRE_LOST, leave
from ot_sdk.worker_host import WorkerHost

MAX_ID = 200
"""Characters of an id that is answered."""

Tools = Mapping[str, tuple[Callable[..., Any], CallRunner]]
"""The functions of the pack, each with what runs it."""


class WorkerLoop:
    """One pack's process, from its first message to the end of its input."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._line = wire.Line(in_fd, out_fd)
        self._host = WorkerHost(self._line)
        self._redactor = Redactor({})
        self._inits: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._refusals: SimpleQueue[wire.Message] = SimpleQueue()
        self._begun = False
        self._pack = ""
        self._tools: Tools = {}
        self._calls: dict[str, tuple[Call, CallRunner]] = {}
        self._wait: Callable[[], object] = threading.Event().wait

    def serve(self) -> NoReturn:
        """Answer until the input ends; the process ends with it."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._let_go)
        sys.stdout = CallOutput()
        for work in (self._read, self._send_refusals):
            threading.Thread(target=work, name=work.__name__.strip("_"), daemon=True).start()
        self._begin(*self._inits.get())
        while True:
            try:
                self._wait()
            except KeyboardInterrupt:
                continue  # the end of the input says when to stop, not a key pressed in a terminal
            except BaseException as error:  # noqa: BLE001 - the loop itself is broken, by whatever a tool did to it
                _give_up(error)

    # ---------------------------------------------------------------- the beginning

    def _begin(self, id: str, params: Any) -> None:
        try:
            start = read_start(params)
            self._redactor = Redactor(start.secrets)
            self._load(start)
        except BaseException as error:  # noqa: BLE001 - other people's code runs at import
            self._line.send(failure(id, error, self._redactor, wire.START_FAILED))
            leave(EXIT_START_FAILED)
        python = ".".join(map(str, sys.version_info[:3]))
        ready = {"protocol": wire.PROTOCOL, "pid": os.getpid(), "python": python, "tools": list(self._tools)}
        self._line.send(wire.result(id, ready))

    def _load(self, start: PackStart) -> None:
        self._host.begin(start.pack, start.secrets, self._redactor)
        host.install(self._host)
        module = import_pack(start.pack, start.file, start.directory)
        functions = tools_of(module)
        self._host.note_import(build_config(module, start.pack, start.settings))
        self._pack = start.pack
        self._tools = self._runnable(functions, start)

    def _runnable(self, functions: Mapping[str, Callable[..., Any]], start: PackStart) -> Tools:
        replies = Replies(Spool(start.spool) if start.spool else None, start.spool_above, self._redactor)
        thread_turns = Turns(1 if start.serial else start.threads)
        in_threads = ThreadRunner(thread_turns, replies, self._answer)
        if not any(map(is_async, functions.values())):
            return {name: (function, in_threads) for name, function in functions.items()}
        on_loop = LoopRunner(thread_turns if start.serial else Turns(start.tasks), replies, self._answer)
        self._wait = on_loop.run_forever
        return {name: (f, on_loop if is_async(f) else in_threads) for name, f in functions.items()}

    # ---------------------------------------------------------------- the reader's thread, which must never wait

    def _read(self) -> None:
        try:
            for message in wire.FrameSplitter().read(self._line.in_fd):
                self._receive(message)
        except BaseException as error:  # noqa: BLE001 - without its reader the worker would be deaf for ever
            _give_up(error)
        leave(EXIT_OK)

    def _receive(self, message: wire.Message) -> None:
        method, id, params = message.get("method"), message.get("id"), message.get("params")
        if method is None:
            self._host.settle(message)
        elif method == "cancel":
            self._cancel(params)
        elif not isinstance(id, str) or len(id) > MAX_ID:
            return  # a notification that is not known here, or nothing that can be answered
        elif method == "call":
            self._receive_call(id, params)
        elif method == "init" and not self._begun:
            self._begun = True
            self._inits.put((id, cast("dict[str, Any]", params) if isinstance(params, dict) else {}))
        else:
            problem = f"there is no method {method!r:.50}"
            self._refusals.put(wire.error(id, wire.METHOD_NOT_FOUND, problem, kind="UnknownMethod"))

    def _receive_call(self, id: str, params: Any) -> None:
        if id in self._calls:
            return  # an answer would be taken for that of the call which runs
        try:
            function, runner = self._tools.get(params["tool"], (None, None))
            if function is None or runner is None:
                raise UnknownTool(f"'{str(params['tool'])[:100]}' is not in pack '{self._pack}'")
            prints = PrintBuffer(partial(self._print, id))
            call = Call(id, f"{self._pack}.{params['tool']}", function, params, prints)
        except (TypeError, LookupError, UnknownTool) as error:
            malformed = InvalidArguments("a call needs tool, arguments and ms")
            problem = error if isinstance(error, UnknownTool) else malformed
            self._refusals.put(failure(id, problem, self._redactor))
        else:
            self._calls[id] = call, runner
            runner.start(call)

    def _cancel(self, params: Any) -> None:
        id = cast("dict[str, Any]", params).get("id") if isinstance(params, dict) else None
        call, runner = self._calls.get(id, (None, None)) if isinstance(id, str) else (None, None)
        if call is not None and runner is not None:
            runner.cancel(call)
            self._host.abandon(call)

    # ---------------------------------------------------------------- other threads

    def _send_refusals(self) -> NoReturn:
        # Not the reader itself: a full pipe would stop it, and with it the server that is to empty the pipe.
        while True:
            self._line.send(self._refusals.get())

    def _answer(self, call: Call, frame: bytes) -> None:
        call.prints.close()
        del self._calls[call.id]
        self._line.send_frame(frame)

    def _print(self, id: str, text: str) -> None:
        send_for_pack(self._line, wire.notification("print", {"id": id, "text": self._redactor.text(text)}))

    def _let_go(self) -> None:
        """In a forked child: the wire, and the call with its prints, stay the parent's."""
        self._line.cut()
        current_call.set(None)


def _give_up(error: BaseException) -> NoReturn:
    sys.__excepthook__(type(error), error, error.__traceback__)
    leave(EXIT_WIRE_LOST)
