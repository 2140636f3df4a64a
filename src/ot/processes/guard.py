"""The guard: runs one process, and sees that nothing of it outlives the process or the server.

    python -I -S guard.py LIFELINE STATUS SERVER MEMORY_MB PROCESSES ARGV...

LIFELINE is a pipe whose other end only the server holds. On STATUS the server reads ``started PID`` or ``failed N``,
then perhaps ``limit processes``, at last ``exit N`` or ``signal N``. The process's own streams do not pass the guard.
Standard library only, and little of it: every worker waits for these imports.

On Linux the guard is a subreaper: whatever the process starts, in a session of its own or forked twice, falls to it.
Elsewhere only the process group is killed, and processes are not counted. Written to work on macOS, untested there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CPUCLOCK_SCHED = 2
QUICK_SECONDS = 0.01
SLOW_SECONDS = 0.1
SWEEP_SECONDS = 5.0
SWEEP_PAUSE = 0.002
LAST_SECONDS = 600.0
LAST_PAUSE = 0.05
TASKS_PER_PROCESS = 64
KERNEL_LISTS_CHILDREN = os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children")  # noqa: PTH110 - no pathlib
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def prctl(option: int, value: int) -> None:
    """Set one property of this process, where the system has such a call."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def children(pid: int) -> list[int]:
    """Return the processes whose parent is *pid*; none where the system does not tell."""
    if not KERNEL_LISTS_CHILDREN:
        return children_by_search(pid)
    found: list[int] = []
    for task in entries(f"/proc/{pid}/task"):
        with suppress(OSError):
            found += map(int, content(f"/proc/{pid}/task/{task}/children").split())
    return found


def children_by_search(pid: int) -> list[int]:
    """Return the same, from all processes there are."""
    found: list[int] = []
    for other in map(int, filter(str.isdigit, entries("/proc"))):
        with suppress(OSError):
            if parent_of(other) == pid:
                found.append(other)
    return found


def entries(directory: str) -> list[str]:
    """Return the names in *directory*; none when there is no such directory, or no longer."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - importing pathlib costs more than the rest of the guard
    except OSError:
        return []


def content(file: str) -> bytes:
    """Return the content of *file*."""
    with open(file, "rb") as opened:  # noqa: PTH123 - as above
        return opened.read()


def parent_of(pid: int) -> int:
    """Return the parent of *pid*; what stands before it in the file may itself hold spaces and brackets.

    Raises:
        OSError: There is no such process.
    """
    return int(content(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])


def descendants(most: int) -> list[int]:
    """Return the descendants of this process, or *most* and a few of them."""
    found = children(os.getpid())
    for pid in found:
        if len(found) < most:
            found += children(pid)
    return found


def processor_time(pids: list[int]) -> int | None:
    """Return the processor time that *pids* have used, in nanoseconds; None if one of them is gone."""
    try:
        return sum(time.clock_gettime_ns((~pid << 3) | CPUCLOCK_SCHED) for pid in pids)
    except OSError:
        return None


def tasks_of_user() -> int:
    """Return how many tasks this user has: the kernel counts all of them against RLIMIT_NPROC, threads too."""
    count = 0
    for name in filter(str.isdigit, entries("/proc")):
        with suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == os.getuid():  # noqa: PTH116 - as above
                count += len(entries(f"/proc/{name}/task"))
    return count


def limit_to(kind: int, amount: int) -> None:
    """Lower one resource limit of this process to *amount*; a lower one stays."""
    lower = [limit for limit in resource.getrlimit(kind) if limit != resource.RLIM_INFINITY]
    amount = min([amount, *lower])
    resource.setrlimit(kind, (amount, amount))


def limit_resources(memory_mb: int, processes: int) -> None:
    """Hold this process and its descendants to what was asked for."""
    limit_to(resource.RLIMIT_CORE, 0)
    if memory_mb:
        limit_to(resource.RLIMIT_AS, memory_mb << 20)
    # The user's other tasks count too and come and go, so the wall stands far behind the guard's own count: a worker
    # must not fail to start a thread because a browser was opened. The kernel never holds root to it.
    if sys.platform == "linux" and os.getuid() != 0:
        limit_to(resource.RLIMIT_NPROC, tasks_of_user() + processes * TASKS_PER_PROCESS)


def become(argv: list[str], guard: int, memory_mb: int, processes: int) -> None:
    """Turn this fork of the guard into the process itself; raise OSError if it cannot be executed."""
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:  # it died before the line above could notice
        os._exit(1)
    for number in signal.valid_signals():
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    limit_resources(memory_mb, processes)
    os.execvp(argv[0], argv)


def launch(argv: list[str], memory_mb: int, processes: int) -> int:
    """Start the process and return its pid; raise OSError if it cannot be forked or executed."""
    guard = os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(argv, guard, memory_mb, processes)
        except OSError as error:
            os.write(writer, str(error.errno).encode())
        except MemoryError:  # the limit asked for is too small even for this
            os.write(writer, str(errno.ENOMEM).encode())
        finally:
            os._exit(127)
    os.close(writer)
    with open(reader, "rb") as pipe:  # noqa: PTH123 - a descriptor; it ends when the exec closes the other end
        problem = pipe.read()
    if problem:
        os.waitpid(pid, 0)
        raise OSError(int(problem), os.strerror(int(problem)))
    return pid


def kill_with_group(pid: int) -> None:
    """Kill one child and the process group that it is in; a child's number cannot be another's before it is reaped."""
    with suppress(OSError):
        group = os.getpgid(pid)
        if group != os.getpgrp():
            os.killpg(group, signal.SIGKILL)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def kill_descendant(pid: int, family: set[int]) -> None:
    """Kill a process that one of *family* started, unless its number is another's by now."""
    with suppress(OSError, AttributeError):
        handle = os.pidfd_open(pid)
        try:
            if parent_of(pid) in family:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def kill_all() -> None:
    """Kill every descendant that can be seen now."""
    waiting = children(os.getpid())
    for pid in waiting:
        kill_with_group(pid)
    # Waiting for those below to fall to the guard, one generation a round, would let them fork faster than they die.
    family = {os.getpid(), *waiting}
    while waiting:
        below = children(waiting.pop())
        family.update(below)
        waiting += below
        for pid in below:
            kill_descendant(pid, family)


class Watch:
    """One process under guard, from its start until nothing of it is left."""

    def __init__(self, child: int, server: int, lifeline: int) -> None:
        """Guard *child* for as long as *server* lives and holds its end of *lifeline*."""
        self.child = child
        self.server = server
        self.status: int | None = None
        self._family: list[int] = []
        self._spent: int | None = None
        self._poll = select.poll()
        self._poll.register(lifeline, select.POLLIN)
        self._must_ask = True
        with suppress(OSError, AttributeError):
            self._poll.register(os.pidfd_open(child), select.POLLIN)
            self._must_ask = False

    def wait(self, processes: int) -> bool:
        """Wait for the end of the process or the server (False), or until there are too many processes (True)."""
        interval = QUICK_SECONDS
        while not self._poll.poll(interval * 1000) and os.getppid() == self.server and not self._has_ended():
            before = len(self._family)
            self._look(processes + 1)
            if len(self._family) > processes:
                return True
            interval = QUICK_SECONDS if len(self._family) > before else min(interval * 2, SLOW_SECONDS)
        return False

    def _has_ended(self) -> bool:
        if not self._must_ask:
            return False  # the poll would have told
        self._reap()
        if self.status is not None:  # asking has reaped it, so the sweep can no longer find its group
            with suppress(OSError):
                os.killpg(self.child, signal.SIGKILL)
        return self.status is not None

    def _look(self, most: int) -> None:
        # Measured before the walk: a process that forks later has used more by the next look. One that has not run, has
        # not forked, and a worker that waits for calls costs next to nothing.
        spent = processor_time(self._family)
        if spent is None or spent != self._spent:
            self._reap_adopted()
            family = descendants(most)
            self._spent = spent if family == self._family else None
            self._family = family

    def sweep(self, seconds: float, pause: float) -> bool:
        """Kill and reap for at most *seconds*, and return whether no child is left."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.status is None:
                kill_with_group(self.child)
            kill_all()
            if not self._reap():
                return True
            time.sleep(pause)
        return False

    def ending(self) -> str:
        """Return how the process ended."""
        code = -signal.SIGKILL if self.status is None else os.waitstatus_to_exitcode(self.status)
        return f"exit {code}" if code >= 0 else f"signal {-code}"

    def _reap_adopted(self) -> None:
        # The process itself is left for the sweep: until it is reaped, its number names its group.
        for pid in children(os.getpid()):
            if pid != self.child:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _reap(self) -> bool:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.child:
                    self.status = ended[1]
            return True
        return False


def leave_streams() -> None:
    """Let go of the process's standard streams: their other ends must see them end with the process."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)
    os.chdir("/")


def go_first() -> None:
    """Get a turn even among hundreds of processes that fork, where the system lets us."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)


def go_before_all() -> None:
    """Run before whatever forks on and on; never otherwise: one that dies needs the processor too, to be reaped."""
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def say(status: int, text: str) -> None:
    """Tell the server, if it still listens."""
    with suppress(OSError):
        os.write(status, f"{text}\n".encode())


def guard(lifeline: int, status: int, server: int, memory_mb: int, processes: int, argv: list[str]) -> None:
    """Run *argv* until it, or *server*, ends; then leave nothing of it."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in IGNORED:  # it is the server that decides when this ends
        signal.signal(number, signal.SIG_IGN)
    for descriptor in (lifeline, status):
        os.set_inheritable(descriptor, False)
    if os.getppid() != server:
        return
    try:
        watch = Watch(launch(argv, memory_mb, processes), server, lifeline)
    except OSError as error:
        return say(status, f"failed {error.errno}")
    leave_streams()
    go_first()
    say(status, f"started {watch.child}")
    if watch.wait(processes):
        go_before_all()
        say(status, "limit processes")
    clean = watch.sweep(SWEEP_SECONDS, SWEEP_PAUSE)
    say(status, watch.ending())
    os.close(status)
    if not clean:  # the server need not wait for what cannot be killed yet
        watch.sweep(LAST_SECONDS, LAST_PAUSE)


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:6]]
    guard(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], sys.argv[6:])
