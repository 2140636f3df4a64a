"""Renders a document's template in a process of its own, which this file is when it is run as a script.

Jinja's sandbox keeps a template from Python's internals but not from endless loops: only a process can be bounded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MARKS = ("{{", "{%", "{#")
"""What a template has, and other texts have not."""
MAX_RENDERED = 1 << 20
CPU_SECONDS = 2
WALL_SECONDS = 10.0
MEMORY_BYTES = 512 << 20


def render_template(text: str, values: Mapping[str, Any]) -> tuple[str, str]:
    """Return the rendered text and no error, or no text and why there is none."""
    request = json.dumps({"text": text, "values": values}).encode()
    try:
        done = subprocess.run(
            [sys.executable, "-I", str(Path(__file__))],
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WALL_SECONDS,
            check=True,
            env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
            cwd=Path(__file__).anchor,
        )
        reply = json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return "", "the template takes too much time or memory"
    return reply["text"], reply["error"]


def _serve() -> None:  # pragma: no cover - runs in the other process
    request = json.loads(sys.stdin.buffer.read())
    _set_limits()
    text, error = _render(request["text"], request["values"])
    sys.stdout.write(json.dumps({"text": text, "error": error}))


def _set_limits() -> None:  # pragma: no cover - runs in the other process
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _render(text: str, values: Mapping[str, Any]) -> tuple[str, str]:  # pragma: no cover - runs in the other process
    import jinja2  # noqa: PLC0415 - only this process pays for it
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415 - as above

    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
    rendered = ""
    try:
        for part in environment.from_string(text).generate(**values):
            rendered += part
            if len(rendered) > MAX_RENDERED:
                return "", "the document renders to more than 1 MiB"
    except MemoryError:
        return "", "the template takes too much memory"
    except Exception as error:  # noqa: BLE001 - a template is other people's code
        line = getattr(error, "lineno", None)
        return "", f"{type(error).__name__}: {error}"[:500] + (f" (line {line})" if line else "")
    return rendered, ""


if __name__ == "__main__":  # pragma: no cover - runs in the other process
    _serve()
