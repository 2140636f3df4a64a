"""A replica starts where only those places can be written to that the compose file lets it write to."""

from __future__ import annotations

import hashlib
import json
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from pace import PATIENCE, patiently
from team.http_server import call

ROOT = Path(__file__).parents[2]
REPLICA: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["x-replica"]
TOKEN = "a-token-for-a-replica-with-a-read-only-root"
CONFIG = f"""\
http:
  tokens: {{alice: {{hash: "sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}"}}}}
  workspaces: {{each: /work/people}}
"""
PROGRAM = "import sys; from ot.entry import main; sys.argv = ['onetool', *sys.argv[1:]]; main()"
ENVIRONMENT = dict(
    pair.split("=", 1)
    for line in re.findall("^ENV (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for pair in line.split()
    if not pair.startswith("PATH=")
)
"""What the image sets beside its path."""


ABOVE = ("/home", "/work", "/var/log")
"""What the places are in, made anew: the test's machine need not have them."""


def writable() -> list[str]:
    """Return the places of the compose file that a replica can write to; its configuration is not one."""
    assert REPLICA["read_only"] is True
    volumes = [volume.split(":") for volume in REPLICA["volumes"] if not volume.startswith("./")]
    return [*(place.partition(":")[0] for place in REPLICA["tmpfs"]), *(place for _, place, *_ in volumes)]


def container(config: Path, environment: dict[str, str]) -> list[str]:
    """Return the command that holds a process to the compose file's mounts, as a container's runtime would."""
    bwrap = shutil.which("bwrap")
    assert bwrap, "bubblewrap is not installed: .ci/system"
    command = [bwrap, "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for above in ABOVE:
        command += ["--tmpfs", above]
    for place in writable():
        command += ["--tmpfs", place]
    for needed in {str(ROOT), sys.prefix, sys.base_prefix}:  # they may lie below one of those
        command += ["--ro-bind", needed, needed]
    command += ["--ro-bind", str(config), "/home/onetool/.onetool/onetool.yaml"]
    for above in ABOVE:
        command += ["--remount-ro", above]
    command += ["--chdir", "/work", "--clearenv"]
    variables = {"HOME": "/home/onetool", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")} | environment
    for name, value in variables.items():
        command += ["--setenv", name, value]
    return command


def serve(tmp_path: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    config = tmp_path / "onetool.yaml"
    config.write_text(CONFIG)
    command = [*container(config, environment), sys.executable, "-c", PROGRAM, "serve", "--http", "0", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_replica_starts_and_runs_with_the_mounts_of_the_compose_file(tmp_path: Path) -> None:
    with serve(tmp_path, ENVIRONMENT) as replica:
        try:
            assert replica.stdout and replica.stderr
            assert select.select([replica.stdout], [], [], PATIENCE)[0]
            line = replica.stdout.readline()
            assert line, replica.stderr.read()
            url = json.loads(line)["url"]
            for _ in patiently():
                if httpx2.get(url.removesuffix("/mcp") + "/readyz", verify=False).status_code == 200:
                    break
            headers = {"authorization": f"Bearer {TOKEN}", "accept": "application/json, text/event-stream"}
            headers |= {"content-type": "application/json", "mcp-protocol-version": "2025-11-25"}
            program = "file.write(path='a.txt', content='kept')\nfile.read(path='a.txt')"
            reply = httpx2.post(url, json=call(program, "2025-11-25"), headers=headers, timeout=PATIENCE, verify=False)
            assert "kept" in reply.text
        finally:
            replica.send_signal(signal.SIGTERM)
            replica.wait(PATIENCE)


def test_without_a_place_for_its_state_it_says_which_variable_gives_one(tmp_path: Path) -> None:
    with serve(tmp_path, {}) as replica:
        _, said = replica.communicate(timeout=PATIENCE)
    assert replica.returncode != 0
    assert "XDG_STATE_HOME" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("file", ["deployment.yaml", "worker.yaml"])
def test_the_manifests_mount_what_the_image_s_state_lies_in(file: str) -> None:
    (pod,) = [
        thing["spec"]["template"]["spec"]
        for thing in yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / file).read_text())
        if thing["kind"] == "Deployment"
    ]
    mounted = [mount["mountPath"] for one in pod["containers"] for mount in one["volumeMounts"]]
    assert any(Path(ENVIRONMENT["XDG_STATE_HOME"]).is_relative_to(place) for place in mounted)
