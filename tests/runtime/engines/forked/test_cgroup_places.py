"""Where groups may be made, read from trees of files that look like those of several machines."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ot.runtime.engines.forked import cgroup
from ot.runtime.engines.forked.cgroup import own_places

NOBODY = 65534
HYBRID_GROUPS = "9:name=systemd:/\n8:pids:/\n4:memory:/manager/job\n2:cpu,cpuacct:/\n0::/\n"


class Machine:
    """A tree with /proc/self of one process, and hierarchies that can be written to."""

    def __init__(self, root: Path, groups: str) -> None:
        self.proc, self.mounts = root / "proc", root / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "self" / "cgroup").write_text(groups)
        (self.proc / "self" / "mountinfo").write_text("23 1 254:0 / / rw - ext4 /dev/root rw\n")

    def mount(self, name: str, options: str, root: str = "/", *, kind: str = "cgroup", group: str = "") -> Path:
        """Mount a hierarchy and return the directory of a group in it."""
        point = str(self.mounts / name).replace(" ", "\\040")
        with (self.proc / "self" / "mountinfo").open("a") as file:
            file.write(f"40 31 0:37 {root} {point} rw,relatime shared:9 - {kind} {kind} rw,{options}\n")
        directory = self.mounts / name / group
        directory.mkdir(parents=True)
        (directory / "cgroup.procs").touch()
        return directory


def delegate(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Mark a group as systemd does, also on file systems that keep no such marks."""

    def marked(path: Path, name: str) -> bytes:
        if (path, name) == (directory, "user.delegate"):
            return b"1"
        raise OSError(61, "No data available")

    monkeypatch.setattr(cgroup.os, "getxattr", marked)


def test_hierarchies_of_version_1_give_each_its_place(tmp_path: Path) -> None:
    machine = Machine(tmp_path, HYBRID_GROUPS)
    pids, cpu = machine.mount("pids", "pids"), machine.mount("cpu", "cpu,cpuacct")
    machine.mount("unified", "", kind="cgroup2").joinpath("cgroup.controllers").write_text("hugetlb\n")
    found = own_places(machine.proc)
    assert [(place.directory, place.controllers, place.unified) for place in found.found] == [
        (pids, ("pids",), False),
        (cpu, ("cpu",), False),
    ]
    assert "no hierarchy" in found.why_not["memory"]


def test_a_group_that_another_made_and_did_not_hand_over_is_left_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, HYBRID_GROUPS)
    machine.mount("memory", "memory", group="manager/job")
    found = own_places(machine.proc)
    assert found.found == ()
    assert "is not delegated" in found.why_not["memory"]


def test_a_delegated_group_of_the_unified_hierarchy_has_all_its_controllers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, "0::/user.slice/run 1.scope\n")
    scope = machine.mount("fs", "nsdelegate", kind="cgroup2", group="user.slice/run 1.scope")
    (scope / "cgroup.controllers").write_text("memory pids\n")
    delegate(monkeypatch, scope)
    found = own_places(machine.proc)
    assert [(place.directory, place.controllers, place.unified) for place in found.found] == [
        (scope, ("pids", "memory"), True)
    ]
    assert list(found.why_not) == ["cpu"]


@pytest.mark.parametrize(
    ("said", "handed_over"), [("yes", True), ("memory pids", True), ("no", False), ("", False), ("0", False)]
)
def test_a_scope_that_the_users_own_systemd_delegated_is_known_by_its_unit(
    tmp_path: Path, said: str, handed_over: bool
) -> None:
    machine = Machine(tmp_path, "0::/app.slice/run-r1.scope\n")
    scope = machine.mount("fs", "", kind="cgroup2", group="app.slice/run-r1.scope")
    (scope / "cgroup.controllers").write_text("memory pids\n")
    unit = tmp_path / "run" / "user" / str(os.getuid()) / "systemd" / "transient" / "run-r1.scope"
    unit.parent.mkdir(parents=True)
    unit.write_text(f"# transient\n[Scope]\nDelegate={said}\nSlice=app.slice\n")
    found = own_places(machine.proc, tmp_path / "run")
    assert [place.directory for place in found.found] == ([scope] if handed_over else [])


def test_a_server_that_stepped_aside_finds_the_group_that_it_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, "0::/a.scope/onetool-12-345-server\n")
    scope = machine.mount("fs", "", kind="cgroup2", group="a.scope")
    (scope / "cgroup.controllers").write_text("cpu memory pids\n")
    delegate(monkeypatch, scope)
    assert [place.directory for place in own_places(machine.proc).found] == [scope]


def test_the_root_that_a_container_sees_is_its_own(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "5:pids:/docker/1f\n")
    pids = machine.mount("a b", "pids", root="/docker/1f")
    assert [place.directory for place in own_places(machine.proc).found] == [pids]


def test_a_control_group_outside_the_mount_is_ignored(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "5:pids:/elsewhere\n")
    machine.mount("pids", "pids", root="/docker/1f")
    found = own_places(machine.proc)
    assert found.found == ()
    assert "not mounted" in found.why_not["pids"]


def test_a_hierarchy_that_cannot_be_written_to_gives_no_place() -> None:
    with TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        machine = Machine(Path(root), "5:pids:/\n")
        (machine.mount("pids", "pids") / "cgroup.procs").chmod(0o444)
        asked = os.fork()
        if asked == 0:  # as an ordinary user: root may write everywhere
            try:
                if os.geteuid() == 0:
                    os.setresuid(NOBODY, NOBODY, NOBODY)
                why = own_places(machine.proc).why_not["pids"]
                os._exit(0 if "cannot be written" in why else 1)
            finally:
                os._exit(2)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1])


def test_a_machine_without_control_groups_says_so(tmp_path: Path) -> None:
    found = own_places(tmp_path / "proc")
    assert found.found == ()
    assert set(found.why_not) == {"pids", "memory", "cpu"}
