"""A headless browser that opens one page and answers expressions, over its debugging pipe."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from system_package import require_programs

SECONDS = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")


class Page:
    """A page in the browser, and all that its console said."""

    def __init__(self, write: int, read: int) -> None:
        self._write = write
        self._read = read
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.said: list[str] = []

    def open(self, place: Path | str, *, dark: bool = False, width: int = 1200) -> None:
        """Show a file or an address and wait until it has loaded."""
        target = self._ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", {"features": theme})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", size)
        self._ask("Page.navigate", {"url": place if isinstance(place, str) else place.absolute().as_uri()})
        self._until_loaded()

    def follow(self, expression: str) -> None:
        """Evaluate what leads to another page, and wait until that has loaded."""
        self.value(expression)
        self._until_loaded()

    def set_cookie(self, name: str, value: str, url: str) -> None:
        """Have a cookie from *url*."""
        self._ask("Storage.setCookies", {"cookies": [{"name": name, "value": value, "url": url}]})

    def _until_loaded(self) -> None:
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """Return what a JavaScript expression is in the page."""
        found = self._ask("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda message: message.get("id") == self._number)
        assert "error" not in answer, answer
        return answer["result"]

    def _until(self, wanted: Any) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while True:
            line, found, rest = self._buffer.partition(b"\0")
            if found:
                self._buffer = rest
                message = json.loads(line)
                if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                    self.said.append(json.dumps(message["params"]))
                if wanted(message):
                    return message
                continue
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._read, 1 << 16)


@contextmanager
def browser() -> Generator[Page]:
    """Yield a browser's page, and end the browser."""
    program = next(filter(None, map(shutil.which, NAMES)), NAMES[0])
    require_programs(program)
    ours_read, theirs_write = os.pipe()
    theirs_read, ours_write = os.pipe()
    arguments = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]

    def at_three_and_four() -> None:
        # Moved out of the way first: either may be the other's place.
        read, write = os.dup2(theirs_read, 20), os.dup2(theirs_write, 21)
        os.dup2(read, 3)
        os.dup2(write, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [*arguments, f"--user-data-dir={profile}"],
            preexec_fn=at_three_and_four, pass_fds=(3, 4, theirs_read, theirs_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_read)
        os.close(theirs_write)
        try:
            yield Page(ours_write, ours_read)
        finally:
            process.kill()
            process.wait(10)
            os.close(ours_read)
            os.close(ours_write)
