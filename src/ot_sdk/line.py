"""Line: sends in the worker's name, and ends the worker when nobody can hear it any more."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ot_sdk.leaving import OK, WIRE_LOST, leave
from ot_sdk.wire import FrameWriter, to_frame


class Line:
    """The worker's end of the wire, shared by all its threads."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self.in_fd = in_fd
        self._out_fd = out_fd
        self._writer = FrameWriter(out_fd)
        self.open = True

    def send(self, message: Mapping[str, Any]) -> None:
        """Send *message*; a forked child says nothing.

        Raises:
            FrameTooLarge: It is too large; nothing was sent.
        """
        frame = to_frame(message)
        if self.open:
            self._write(frame)

    def send_reply(self, frame: bytes) -> None:
        """Send the reply to a call; a forked child that got this far ends."""
        if not self.open:
            leave(OK)
        self._write(frame)

    def cut(self) -> None:
        """Let go of the wire in a forked child: it must not speak for its parent, nor keep the wire open."""
        self.open = False
        self._writer.abandon()
        for fd in (self.in_fd, self._out_fd):
            with suppress(OSError):
                os.close(fd)

    def _write(self, frame: bytes) -> None:
        try:
            self._writer.send_frame(frame)
        except OSError as error:
            if error.errno == errno.EPIPE:
                leave(OK)  # the server is gone, and so is the reason to be here
            with suppress(Exception):  # standard error may be closed too
                sys.stderr.write(f"ot_sdk: the worker's connection is gone ({error}): did a tool close all files?\n")
            leave(WIRE_LOST)
