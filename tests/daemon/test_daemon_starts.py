"""A shared server is started once, by whoever needs it first; where anything is unusual, a client is served alone."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from checkout import PACKAGES, ROOT
from mcp_wire import WireServer
from ot.daemon.main import MAX_FDS
from ot.relay.header import Header
from ot.relay.place import Unshared, find_place
from ot.relay.reach import reach_daemon
from pace import wait_while
from shared_bed import ONETOOL, SharedBed, is_alone, wait_until_gone

DAEMON = ROOT / "src/ot/daemon/__main__.py"


def _served(client: WireServer) -> int:
    return int(client.run("40 + 2").text)


# ---------------------------------------------------------------- starting


def test_ten_clients_that_start_at_once_share_one_server(new_user: SharedBed) -> None:
    with ThreadPoolExecutor(10) as pool:
        clients = list(pool.map(lambda _: new_user.client(), range(10)))
        try:
            assert list(pool.map(_served, clients)) == [42] * 10
            assert [is_alone(client) for client in clients] == [False] * 10
            assert new_user.connections() == 10
            assert len(new_user.daemons()) == 1
        finally:
            for client in clients:
                client.close()


def test_what_a_killed_server_left_behind_is_no_obstacle(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        leftover = user.socket()
        user.kill_daemon()
        assert leftover.exists()
        leftover.with_name(f"{leftover.name}.12345").touch()
        with user.client() as other:
            assert _served(other) == 42
            assert not is_alone(other)
        assert list(leftover.parent.glob("*.sock.*")) == []


def test_a_client_does_not_wait_for_another_that_hangs_while_it_starts_the_server(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        start = user.socket().with_suffix(".start")
        user.kill_daemon()
    with start.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with user.hasty_client() as client:
            assert _served(client) == 42
            assert is_alone(client)


def test_a_second_server_of_the_same_key_ends_and_leaves_the_first_in_peace(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        first, inode = user.daemon(), user.socket().stat().st_ino
        command = [sys.executable, "-I", str(DAEMON), str(user.socket())]
        second = subprocess.run(command, env=user.environment(), stdout=subprocess.PIPE, timeout=60, check=True)
        assert second.stdout == b"no"
        assert (user.daemon(), user.socket().stat().st_ino) == (first, inode)


def test_a_server_whose_socket_was_deleted_serves_its_clients_to_the_end_and_a_new_one_takes_the_others(
    user: SharedBed,
) -> None:
    with user.client() as client:
        client.run("1")
        old = user.daemon()
        user.socket().unlink()
        with user.client() as other:
            assert _served(other) == 42
            assert not is_alone(other)
            assert user.daemon() != old
            assert _served(client) == 42
    wait_until_gone(old)


def test_a_server_that_does_not_answer_is_not_waited_for(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        pid = user.daemon()
        os.kill(pid, signal.SIGSTOP)
        try:
            with user.client() as other:
                assert _served(other) == 42
                assert "does not answer" in other.stderr_text()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert _served(client) == 42


def test_a_server_that_can_open_nothing_more_leaves_new_clients_to_themselves(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        pid = user.daemon()
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            with user.hasty_client() as other:
                assert _served(other) == 42
                assert is_alone(other)
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert _served(client) == 42
        with user.client() as other:
            assert _served(other) == 42
            assert not is_alone(other)


# ---------------------------------------------------------------- served alone


@pytest.mark.parametrize("name", ["ONETOOL_DAEMON", "CI"])
def test_a_client_that_wants_it_so_is_served_alone(new_user: SharedBed, name: str) -> None:
    off, ci = ("off", "") if name == "ONETOOL_DAEMON" else ("", "true")
    with new_user.client(ONETOOL_DAEMON=off, CI=ci) as client:
        assert _served(client) == 42
        assert is_alone(client)
    assert not new_user.directory.exists()


@pytest.mark.parametrize(
    "flaw", ["a link", "readable by others", "a file", "of a path that is too long", "not to be made"]
)
def test_without_a_private_directory_a_client_is_served_alone(new_user: SharedBed, flaw: str) -> None:
    place = new_user.directory
    runtime = str(new_user.runtime)
    if flaw == "a link":
        (new_user.runtime / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(new_user.runtime / "elsewhere")
    elif flaw == "readable by others":
        place.mkdir()
        place.chmod(0o755)
    elif flaw == "a file":
        place.touch()
    elif flaw == "not to be made":
        runtime = str(new_user.runtime / "missing")
    else:
        deep = new_user.runtime / ("d" * 100)
        deep.mkdir()
        runtime = str(deep)
    with new_user.client(XDG_RUNTIME_DIR=runtime) as client:
        assert _served(client) == 42
        assert is_alone(client)


def test_without_a_home_a_client_is_served_alone(new_user: SharedBed) -> None:
    client = new_user.client(HOME="", handshake=False)
    client.wait_for_stderr("HOME is not set")
    client.kill()


def test_in_a_directory_that_was_deleted_a_client_is_told_so(new_user: SharedBed) -> None:
    gone = new_user.cwd / "gone"
    gone.mkdir()
    script = (
        "import os, sys; os.rmdir(os.getcwd()); sys.argv[1:] = ['serve', '--shared']; from ot.entry import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=gone,
        env=new_user.environment(),
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode
    assert "served alone" in ended.stderr
    assert "working directory" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_options_that_a_shared_server_does_not_know_are_refused_as_they_are_without_it(user: SharedBed) -> None:
    client = user.client("--no-such-option", handshake=False)
    client.wait_for_stderr("No such option")
    assert client.close() == 2


# ---------------------------------------------------------------- what is inherited


def test_the_limits_of_the_client_that_starts_the_server_do_not_reach_the_others(new_user: SharedBed) -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), "choom", "-n", "300", "--"]
    command += ["prlimit", "--nofile=60:", "--stack=1000000:", ONETOOL, "serve", "--shared"]
    with WireServer.start(command, cwd=new_user.cwd, env=new_user.environment(), warm=False) as first:
        assert _served(first) == 42
        pid = new_user.daemon()
        assert resource.prlimit(pid, resource.RLIMIT_NOFILE) == (min(files, MAX_FDS), files)
        assert resource.prlimit(pid, resource.RLIMIT_STACK)[0] == 8 << 20
        assert resource.prlimit(pid, resource.RLIMIT_CORE)[0] == 0
        assert os.sched_getaffinity(pid) == os.sched_getaffinity(0)
        assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "0\n"
        with new_user.client() as other:
            assert _served(other) == 42
            assert (is_alone(other), new_user.daemon()) == (False, pid)


@pytest.mark.parametrize(
    "how", [("prlimit", "--nofile=200:200"), ("nice", "-n", "5")], ids=["a hard limit", "niceness"]
)
def test_what_cannot_be_undone_is_not_shared(new_user: SharedBed, how: tuple[str, ...]) -> None:
    script = "from ot.relay.place import find_place; print(find_place().socket)"
    command = [sys.executable, "-P", "-c", script]
    asked = [
        subprocess.run([*around, *command], env=new_user.environment(), capture_output=True, text=True, check=True)
        for around in ((), (), how)
    ]
    one, same, other = (done.stdout for done in asked)
    assert (one == same, one == other) == (True, False)


# ---------------------------------------------------------------- a full disk


def test_a_server_that_can_write_no_log_goes_on(new_user: SharedBed) -> None:
    # A hard limit, which the server does not raise.
    command = ["prlimit", "--fsize=0:0", sys.executable, "-P", "-c", "from ot.entry import main; main()"]
    client = WireServer.start([*command, "serve", "--shared"], cwd=new_user.cwd, env=new_user.environment(), warm=False)
    with client:
        for _ in range(3):
            assert _served(client) == 42
        assert not is_alone(client)
        [pid] = {new_user.control()["pid"] for _ in range(3)}
        # It could not write who it is, so nobody else can end it.
        os.kill(pid, signal.SIGKILL)


# ---------------------------------------------------------------- other versions


def _install(user: SharedBed, name: str) -> Path:
    """Return a directory that stands for an installation, with a record of its own."""
    place = user.home / name
    place.mkdir()
    for package in PACKAGES:
        (place / package.name).symlink_to(package)
    (place / "onetool_run-1.dist-info").mkdir()
    (place / "onetool_run-1.dist-info" / "RECORD").write_text("1")
    return place


def _of(user: SharedBed, installed: Path) -> WireServer:
    command = [sys.executable, "-P", "-c", "from ot.entry import main; main()", "serve", "--shared"]
    return WireServer.start(command, cwd=user.cwd, env=user.environment(PYTHONPATH=str(installed)), warm=False)


def test_an_upgrade_and_a_downgrade_give_new_clients_a_new_server_and_leave_the_others_where_they_are(
    new_user: SharedBed,
) -> None:
    installed = _install(new_user, "installed")
    record = installed / "onetool_run-1.dist-info" / "RECORD"
    with _of(new_user, installed) as client:
        assert _served(client) == 42
        old = new_user.daemon()
        record.unlink()
        record.write_text("another version")
        with _of(new_user, installed) as other:
            assert _served(other) == 42
            assert not is_alone(other)
            assert _served(client) == 42
            [new] = set(new_user.daemons()) - {old}
    wait_until_gone(old)
    assert new_user.daemons() == [new]


def test_two_installations_have_a_server_each(new_user: SharedBed) -> None:
    places = [_install(new_user, name) for name in ("one", "two")]
    with _of(new_user, places[0]) as one, _of(new_user, places[1]) as two:
        assert [_served(one), _served(two)] == [42, 42]
        assert len(new_user.daemons()) == 2


def test_when_the_installation_is_deleted_clients_are_served_to_the_end(new_user: SharedBed) -> None:
    installed = _install(new_user, "installed")
    with _of(new_user, installed) as client:
        assert _served(client) == 42
        pid = new_user.daemon()
        shutil.rmtree(installed)
        wait_while(lambda: new_user.daemons() and "it still takes clients")
        assert _served(client) == 42
    wait_until_gone(pid)


# ---------------------------------------------------------------- who may connect


BECOME_NOBODY = "import os; os.setgroups([]); os.setuid(65534);"


def _refusal(user: SharedBed, *around: str, first: str = "") -> str:
    """Return what the shared server says to a process that knows everything about it, started by *around*."""
    script = (
        f"import socket, sys; {first} s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]);"
        "print(s.recv(300).decode())"
    )
    command = [*around, sys.executable, "-I", "-c", script, str(user.socket())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.mark.parametrize("kind", ["--mount", "--net", "--user"])
def test_a_process_in_another_namespace_is_refused(user: SharedBed, kind: str) -> None:
    with user.client() as client:
        client.run("1")
        around = ("unshare", kind) if os.geteuid() == 0 else ("unshare", "--user", "--map-current-user", kind)
        assert "confined differently" in _refusal(user, *around)


def test_a_process_that_may_gain_no_privileges_is_refused(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        assert "confined differently" in _refusal(user, "setpriv", "--no-new-privs")


OTHERS_SERVER = (
    "import os, socket, sys; os.setgroups([]); os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
    "s.bind(sys.argv[1]); s.listen(); print('listens', flush=True); c, _ = s.accept(); print(c.recv(1000), flush=True)"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_server_of_another_user_is_sent_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after ``su`` or ``sudo``, which leave XDG_RUNTIME_DIR, if its owner puts another directory into its place."""
    runtime = Path(tempfile.mkdtemp(prefix="ot", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    try:
        place = find_place()
        assert place.directory == str(runtime / "onetool")
        runtime.chmod(0o755)
        Path(place.directory).chmod(0o755)
        os.chown(place.directory, 65534, 65534)
        with pytest.raises(Unshared, match="not a directory of this user alone"):
            find_place()
        command = [sys.executable, "-I", "-c", OTHERS_SERVER, place.socket]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout and server.stdout.readline() == "listens\n"
            Path(place.socket).chmod(0o777)
            with pytest.raises(Unshared, match="belongs to another user"):
                reach_daemon(place, Header(b"key", b"/", (b"serve",), {b"TOKEN": b"hunter22"}))
            assert server.stdout.readline() == "b''\n"
    finally:
        shutil.rmtree(runtime)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_another_user_is_refused_even_where_the_modes_were_opened_by_hand(user: SharedBed) -> None:
    with user.client() as client:
        client.run("1")
        with pytest.raises(subprocess.CalledProcessError):
            _refusal(user, first=BECOME_NOBODY)
        places = (user.runtime, user.directory, user.socket())
        modes = [place.stat().st_mode for place in places]
        try:
            for place in places:
                place.chmod(0o777)
            assert _refusal(user, first=BECOME_NOBODY).startswith("-")
        finally:
            for place, mode in zip(places, modes, strict=True):
                place.chmod(mode)
