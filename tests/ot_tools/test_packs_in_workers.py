"""Bundled packs that run in workers: found at once, read late, installed by hash, and opening only what is allowed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import anyio
import pytest

import ot.build
from ot.config.paths import Paths
from ot.registry.bundled_extensions import LazyFiles, bundled_extensions
from ot.workspace import Workspace
from run_app import paths_in

pytestmark = pytest.mark.anyio

PACK = '''
    # /// script
    # requires-python = ">=3.12"
    # dependencies = ["six>=1.17,<2"]
    # ///
    """Says hello, and reads."""

    import os
    import threading

    import ot_sdk
    import six
    from shared_word import WORD

    pack = "hello"
    __all__ = ["first", "hello", "names", "swapped"]
    __ot_read_only__ = ["first", "hello", "names", "swapped"]
    __ot_requires__ = {"secrets": ["HELLO_KEY"], "programs": ["no-such-program"]}


    def hello(*, name: str) -> str:
        """Say hello."""
        return f"{WORD} {name}, with six {six.__version__}"


    def first(*, path: str) -> str:
        """Return the first line of a file."""
        with ot_sdk.open_file(path) as file:
            assert file.name == path
            return file.readline().decode()


    def names(*, path: str = ".") -> list[str]:
        """Return the names in a directory that may be shown."""
        with ot_sdk.open_directory(path) as directory:
            return sorted(name for name in os.listdir(directory.path) if directory.shows(name))


    def swapped(*, path: str, target: str) -> str:
        """Return the first line of a file whose place a link takes between the look and the opening."""
        found = os.open

        def late(at, *rest, **more):
            os.remove(at)
            os.symlink(target, at)
            return found(at, *rest, **more)

        os.open = late
        try:
            return first(path=path)
        finally:
            os.open = found
'''


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of packs like the bundled one, with one pack."""
    directory = tmp_path_factory.mktemp("in_workers")
    (directory / "_shared").mkdir()
    (directory / "_shared" / "shared_word.py").write_text('WORD = "hello"\n')
    folder = directory / "hello"
    folder.mkdir()
    main = folder / "hello_tools.py"
    main.write_text(dedent(PACK).lstrip())
    options = ["--quiet", "--universal", "--python-version", "3.12", "--generate-hashes", "--no-header"]
    subprocess.run(
        ["uv", "pip", "compile", *options, str(main), "-o", str(folder / "requirements.lock")],
        check=True,
        timeout=100,
        stdout=subprocess.DEVNULL,
    )
    return directory


@pytest.fixture
def paths(tmp_path: Path, packs: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setattr(ot.build, "IN_WORKERS", packs)
    return paths_in(tmp_path)


@pytest.fixture
async def app(paths: Paths) -> AsyncGenerator[Workspace]:
    opened = Workspace.alone(paths)
    yield opened
    await opened.aclose()


async def run(app: Workspace, program: str) -> str:
    with anyio.fail_after(100):
        return "\n".join((await app.run(program)).texts)


async def test_a_call_installs_the_locked_packages_and_the_shared_modules_are_beside_it(app: Workspace) -> None:
    assert await run(app, 'hello.hello(name="you")') == "hello you, with six 1.17.0"


async def test_files_are_opened_by_the_rule_for_paths(app: Workspace, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "out.txt").write_text("private")
    (tmp_path / "work" / "link").symlink_to(tmp_path / "out.txt")
    assert await run(app, 'hello.first(path="a.txt")') == "one\n"
    for path in ("link", "../out.txt", str(tmp_path / "out.txt"), "/etc/passwd"):
        said = await run(app, f"hello.first(path={path!r})")
        assert said.startswith(f"PermissionError: {path!r}: it is outside the allowed directories")
    assert (await run(app, 'hello.first(path="none.txt")')).startswith("FileNotFoundError: 'none.txt' does not exist")
    assert (await run(app, 'hello.first(path=".")')).startswith("IsADirectoryError: '.'")
    assert (await run(app, 'hello.names(path="a.txt")')).startswith("NotADirectoryError: 'a.txt'")


async def test_a_link_that_takes_a_files_place_meanwhile_is_not_followed(app: Workspace, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("one")
    (tmp_path / "out.txt").write_text("private")
    said = await run(app, f'hello.swapped(path="a.txt", target={str(tmp_path / "out.txt")!r})')
    assert "private" not in said
    assert "Error" in said


async def test_another_file_in_the_place_of_the_one_found_is_not_read(app: Workspace, tmp_path: Path) -> None:
    from ot_sdk.files import open_found_file

    file = tmp_path / "a.txt"
    file.write_text("one")
    found = file.stat()
    file.rename(tmp_path / "b.txt")
    file.write_text("another")
    with pytest.raises(PermissionError, match=r"'a\.txt' was replaced while it was opened"):
        open_found_file("a.txt", str(file), (found.st_dev, found.st_ino))


async def test_what_is_hidden_below_a_directory_is_not_shown(tmp_path: Path, packs: Path, paths: Paths) -> None:
    work = tmp_path / "work"
    (work / "keys").mkdir()
    (work / ".onetool").mkdir()
    (work / "a.txt").touch()
    config = {"secrets_file": str(work / "keys" / "secrets.yaml")}
    app = Workspace.alone(paths_in(tmp_path, config))
    try:
        assert (await run(app, "hello.names()")).splitlines()[0] == '["a.txt","keys"]'
        (work / "keys" / "secrets.yaml").write_text("A: b\n")
        (work / "keys" / "secrets.yaml").chmod(0o600)
        await app.reload()
        assert (await run(app, 'hello.names(path="keys")')).splitlines()[0] == "[]"
    finally:
        await app.aclose()


async def test_health_tells_what_is_installed_later_and_what_a_pack_lacks(app: Workspace) -> None:
    said = await run(app, '__format__ = "json"\not.health()["packs"]')
    assert '"installed_at_first_call":["hello"]' in said
    assert "the secret HELLO_KEY: put it into secrets.yaml or the environment" in said
    assert "the program no-such-program: install it and make sure that it is on the PATH" in said


async def test_a_disabled_pack_is_not_offered(tmp_path: Path, paths: Paths) -> None:
    app = Workspace.alone(paths_in(tmp_path, {"packs": {"disabled": ["hello", "guide"]}}))
    try:
        assert not {"hello", "guide"} & set(app.picture.registry.packs)
        assert {"file", "ot"} <= set(app.picture.registry.packs)
        assert "packs" not in json.loads(await run(app, '__format__ = "json"\not.health()'))
        said = await run(app, 'hello.hello(name="you")')
        assert "the pack 'hello' is disabled: the setting packs.disabled names it" in said
    finally:
        await app.aclose()


async def test_a_server_of_the_user_takes_the_place_of_a_bundled_pack_without_a_word(
    tmp_path: Path, paths: Paths, caplog: pytest.LogCaptureFixture
) -> None:
    config: Mapping[str, Any] = {"servers": {"hello": {"command": "true"}}}
    app = Workspace.alone(paths_in(tmp_path, config))
    try:
        assert app.picture.registry.packs["hello"].source == "proxy"
        assert "replaces" not in caplog.text
        assert "packs" not in json.loads(await run(app, '__format__ = "json"\not.health()')), "of the bundled one"
    finally:
        await app.aclose()


async def test_a_projects_server_that_takes_a_bundled_packs_place_is_told(tmp_path: Path, paths: Paths) -> None:
    settings = tmp_path / "work" / ".onetool"
    settings.mkdir()
    (settings / "onetool.yaml").write_text("servers: {hello: {command: 'true'}}\n")
    app = Workspace.alone(Paths.of(tmp_path / "work", tmp_path / "user"), trust_project=True)
    try:
        assert "the project's server 'hello' replaces the bundled pack 'hello'" in app.picture.loaded.warnings
    finally:
        await app.aclose()


async def test_no_file_of_a_pack_is_read_whole_before_it_is_asked_for(app: Workspace, packs: Path) -> None:
    bundled_extensions.cache_clear()
    (extension,) = bundled_extensions(packs)
    assert extension.secrets == ("HELLO_KEY",)
    assert isinstance(extension.files, LazyFiles)
    assert extension.files._read == {}
    assert len(extension.files["hello_tools.py"]) == (packs / "hello" / "hello_tools.py").stat().st_size


async def test_a_missing_network_is_one_error_that_says_what_to_do(
    tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    app = Workspace.alone(paths)
    try:
        said = await run(app, 'hello.hello(name="you")')
    finally:
        await app.aclose()
    how = "which needs the network once, at the first call or by 'onetool prefetch hello'"
    assert f"its packages could not be installed, {how}: 'uv pip' failed" in said


async def test_a_package_with_another_hash_is_not_installed(tmp_path: Path, packs: Path, paths: Paths) -> None:
    lock = packs / "hello" / "requirements.lock"
    kept = lock.read_text()
    changed = kept
    for digest in {part for part in kept.split() if part.startswith("--hash=sha256:")}:
        changed = changed.replace(digest, digest[:-8] + "0" * 8)
    lock.write_text(changed)
    bundled_extensions.cache_clear()
    app = Workspace.alone(paths)
    try:
        said = await run(app, 'hello.hello(name="you")')
    finally:
        lock.write_text(kept)
        os.utime(lock)
        bundled_extensions.cache_clear()
        await app.aclose()
    assert "Hash mismatch" in said


@pytest.mark.parametrize(
    "line",
    ["--index-url https://evil.test/simple", "six @ https://evil.test/six.whl", "-e .", "six>=1", "-r other.txt"],
    ids=["an index", "an address", "an editable package", "a range", "another list"],
)
async def test_a_list_of_packages_that_holds_more_than_versions_and_hashes_is_refused(
    line: str, packs: Path, paths: Paths
) -> None:
    lock = packs / "hello" / "requirements.lock"
    kept = lock.read_text()
    lock.write_text(f"{line}\n{kept}")
    bundled_extensions.cache_clear()
    app = Workspace.alone(paths)
    try:
        said = await run(app, 'hello.hello(name="you")')
    finally:
        lock.write_text(kept)
        bundled_extensions.cache_clear()
        await app.aclose()
    assert f"requirements.lock may list names, versions and hashes alone, not '{line}'" in said
