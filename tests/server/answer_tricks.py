"""What answers a question without a person, as far as it can: helpers of scripts that packs, servers and clients run.

As a program it is a client, or any other process: each line of its input is a message for the server that it has
started, or a script that it executes itself; the answer is a line.
"""

# pyright: basic, reportOptionalMemberAccess=false
# ruff: noqa: T201
from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

SECONDS = 15.0
YES = {"action": "accept", "content": {"decision": "allow"}}
CODE = SOCKET = ONETOOL = ""


def say(answer, raw=b"", path=""):
    """Answer over the socket as ``onetool answer`` does, and return what the server says."""
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(SECONDS)
        server.connect(path or SOCKET)
        return say_on(server, answer, raw)


def say_on(server, answer, raw=b""):
    """Answer on a connection."""
    with server.makefile("rb") as lines:
        lines.readline()
        said = {"code": CODE, **answer} if isinstance(answer, dict) else answer
        server.sendall(raw + json.dumps(said).encode() + b"\n")
        return lines.readline()


def in_child(act, wait=True):
    """Do something in a forked process."""
    if pid := os.fork():
        if wait:
            finish(pid)
        return
    with contextlib.suppress(BaseException):
        act()
    os._exit(0)


def finish(pid):
    """Wait for a process, not for long."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def at_own_terminal(act):
    """Do something in a process that a new terminal controls, where somebody types yes without pause."""
    screen, its = pty.openpty()
    if pid := os.fork():
        os.close(its)
        typist = threading.Thread(target=_type, args=(screen,))
        typist.start()
        finish(pid)
        typist.join()
        return
    os.setsid()
    fcntl.ioctl(its, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(its, fd)
    with contextlib.suppress(BaseException):
        act()
    os._exit(0)


def _type(screen):
    end = time.monotonic() + SECONDS
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            if select.select([screen], [], [], 0.2)[0] and b": " in os.read(screen, 65536):
                os.write(screen, b"y\n")
    os.close(screen)


def redirect(fd):
    """Let *fd* lead to a pipe."""
    os.dup2(os.pipe()[fd], fd)


def run_command(command, typed=b""):
    """Run a command with pipes."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, input=typed, capture_output=True, timeout=SECONDS, check=False)


def pass_connection(answer):
    """Hand a connection to a process at a terminal of its own."""
    ours, theirs = socket.socketpair()
    server = socket.socket(socket.AF_UNIX)
    server.connect(SOCKET)
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [server.fileno()]))])

    def take():
        _, ancillary, _, _ = theirs.recvmsg(1, socket.CMSG_SPACE(4))
        with socket.socket(fileno=array.array("i", ancillary[0][2])[0]) as passed:
            say_on(passed, answer)

    in_child(lambda: at_own_terminal(take))


def with_credentials(answer, pid):
    """Send credentials of another process with the answer."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(SOCKET)
        said = json.dumps({"code": CODE, **answer}).encode() + b"\n"
        credentials = struct.pack("3i", pid, os.getuid(), os.getgid())
        server.sendmsg([said], [(socket.SOL_SOCKET, 2, credentials)])  # SCM_CREDENTIALS
        server.settimeout(1)
        with contextlib.suppress(OSError):
            server.recv(65536)


def execute(script, code, path, onetool):
    """Execute a script with what it is to know."""
    globals().update(CODE=code, SOCKET=path, ONETOOL=onetool)
    try:
        exec(script, globals())
    except BaseException as error:  # noqa: BLE001 - the test says which it does not expect
        return repr(error)
    return "done"


def main():
    """Start the server of the arguments, if any, and do what comes, line by line."""
    server = None
    if command := sys.argv[1:]:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=_relay, args=(server,), daemon=True).start()
    for line in sys.stdin:
        asked = json.loads(line)
        if "send" in asked and server:
            server.stdin.write(json.dumps(asked["send"]).encode() + b"\n")
            server.stdin.flush()
        else:
            print(json.dumps({"executed": execute(*asked["execute"])}), flush=True)
    if server:
        server.stdin.close()
        server.wait(SECONDS)


def _relay(server):
    for line in server.stdout:
        print(line.decode().strip(), flush=True)


if __name__ == "__main__":
    main()
