"""Starts the server's own log as its configuration says."""

from __future__ import annotations

from ot.app import App
from ot.log_file import LogFile
from ot.logs import configure_logs, log_path


def start_log(app: App, *, terminal_level: str = "") -> None:
    """Write the log of *app* from now on; *terminal_level* is for a person who waits for a command to end."""
    loaded = app.picture.loaded
    logs = loaded.config.logs
    file = LogFile(log_path(loaded.state_dir), max_bytes=logs.max_bytes, files=logs.files) if logs.file else None

    def redact(text: str) -> str:
        return app.picture.loaded.secrets.redact(text)  # asked anew for every line: a reload may bring new secrets

    configure_logs(logs.level, redact, format=logs.format, file=file, terminal_level=terminal_level)
