"""What programs might try with the packs ``rg`` and ``code``: each is refused, or harmless."""

from __future__ import annotations

import base64
import gzip
import importlib
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest

from answers import NO, YES, User
from callers import asking
from code_app import CodeApp, code_app
from ot.build import IN_WORKERS
from ot_sdk.files import OpenDirectory

OUTSIDE = "outside-4711"
HIDDEN = "hidden-4712"
USER = "settings {a,b}[1]*"
"""The user's directory, inside the working directory: a name that would be a glob."""
EVIL = "#!/bin/sh\ntouch $(dirname $0)/ran\ncat /etc/passwd\n"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Generator[CodeApp]:
    top = tmp_path_factory.mktemp("code_security")
    with pytest.MonkeyPatch.context() as patch:
        config = top / "planted.ripgreprc"
        config.write_text(f"--pre={top}/work/evil.sh\n--follow\n--hidden\n")
        patch.setenv("RIPGREP_CONFIG_PATH", str(config))
        with code_app(top, user=USER, rg={"max_bytes": 8 << 20}) as app:
            fill(app, top)
            yield app


def fill(app: CodeApp, top: Path) -> None:
    outside = top / "outside"
    outside.mkdir()
    (outside / "private.py").write_text(f"def private():\n    return '{OUTSIDE}'\n")
    user = app.directory / USER
    (user / "secret.py").write_text(f"def secret():\n    return '{HIDDEN}'\n")
    app.write(
        {
            "a.py": "def apple():\n    return old(1)\n",
            "-e.txt": "apple in a file with a dash\n",
            "--pre=evil.sh": "apple in a file like an option\n",
            "evil.sh": EVIL,
            ".ripgreprc": "--pre=./evil.sh\n--follow\n",
            ".rgignore": f"!.env\n!/{USER}\n!**/secret.py\n",
            ".ignore": f"!{USER}/\n!.git\n!.onetool\n",
            ".env": "TOKEN=apple\n",
            ".git/config": f"[core]\n# {HIDDEN}\n",
            ".git/hooks/pre-commit": "old(1)\n",
            ".onetool/tools/x/x_tools.py": f"def tool():\n    return '{HIDDEN}', old(1)\n",
            "sub/.onetool/y.py": f"def tool():\n    return '{HIDDEN}', old(1)\n",
        }
    )
    (app.directory / "evil.sh").chmod(0o755)
    (app.directory / "link.py").symlink_to(outside / "private.py")
    (app.directory / "linked").symlink_to(outside)
    (app.directory / "up").symlink_to("..")
    (app.directory / "to-user").symlink_to(USER)
    (app.directory / "packed.py.gz").write_bytes(gzip.compress(b"needle-in-gzip\n"))
    (app.directory / "binary.py").write_bytes(b"def binary(): ...\n\0needle-in-binary\n")
    (app.directory / "one-line.txt").write_text("b" * (1 << 20))
    (app.directory / os.fsdecode(b"bad\xff.py")).write_text("def badly_named(): ...\n")
    os.mkfifo(app.directory / "pipe.py")
    (app.directory / "crlf\n.py").write_text("def odd_name(): ...\n")


SEARCHES = [
    # arguments that look like options
    pytest.param("rg.search(pattern='--pre=./evil.sh')", "[]", id="a pattern like an option"),
    pytest.param("rg.search(pattern='-e', fixed=True, glob='*.py')", "[]", id="a pattern of one dash and letter"),
    pytest.param("rg.search(pattern='--files')", "[]", id="a pattern that would list files"),
    pytest.param("rg.search(pattern='--', fixed=True, glob='*.py')", "[]", id="a pattern that would end the options"),
    pytest.param("rg.search(pattern='x', glob='--pre=./evil.sh')", "[]", id="a glob like an option"),
    pytest.param("rg.search(pattern='x', glob=['a', '--follow'])", "[]", id="a list of globs with an option"),
    pytest.param("rg.search(pattern='x', types='--follow')", "unrecognized file type", id="a type like an option"),
    pytest.param("rg.search(pattern='x', types='py --pre=./evil.sh')", "unrecognized", id="a type and an option"),
    pytest.param("rg.search(pattern='x', types=['all\\0--follow'])", "without NUL", id="a type with a NUL"),
    pytest.param("rg.search(pattern='a\\0b')", "without NUL", id="a pattern with a NUL"),
    pytest.param("rg.search(pattern=['--pre', './evil.sh'])", "must", id="a list for a pattern"),
    pytest.param("rg.search(pattern='x', limit='1 --pre=./evil.sh')", "must be int", id="a text for a number"),
    pytest.param("rg.search(pattern='apple', path='-e.txt')[0]['line']", "1", id="a file that begins with a dash"),
    pytest.param("rg.count(pattern='apple', path='--pre=evil.sh')[0]['count']", "1", id="a file named like an option"),
    pytest.param("rg.search(pattern='apple', path='--follow')", "does not exist", id="an option for a path"),
    pytest.param("rg.search(pattern='x', pre='./evil.sh')", "pre", id="an argument named like an option"),
    # what a repository plants
    pytest.param("rg.search(pattern='root:')", "[]", id="a configuration file that names a preprocessor"),
    pytest.param("rg.files(path='linked')", "outside the allowed", id="a configuration file that follows links"),
    pytest.param("rg.files(glob='.git/**')", "[]", id="a glob that names git's files"),
    pytest.param(f"rg.search(pattern='{HIDDEN}', hidden=True, ignored=True)", "[]", id="ignore files that show all"),
    pytest.param(f"rg.search(pattern='{HIDDEN}', glob='**/secret.py')", "[]", id="a glob that names a hidden file"),
    pytest.param("rg.files(glob='settings*/**', hidden=True)", "[]", id="a glob that names the user's directory"),
    pytest.param("rg.count(pattern='secret', ignored=True)", "[]", id="a count in hidden files"),
    pytest.param("rg.files(glob='**/.onetool/**', hidden=True)", "[]", id="a glob for the settings of a project"),
    # paths
    pytest.param("rg.search(pattern='x', path='..')", "outside the allowed directories", id="the directory above"),
    pytest.param("rg.search(pattern='x', path='sub/../../outside')", "outside the", id="a way up inside a path"),
    pytest.param("rg.search(pattern='x', path='/etc')", "outside the allowed", id="a directory of the system"),
    pytest.param("rg.search(pattern='root', path='/etc/passwd')", "outside the allowed", id="a file of the system"),
    pytest.param("rg.search(pattern='x', path='~/.ssh')", "outside the allowed", id="the home directory"),
    pytest.param("rg.search(pattern='x', path='/proc/self/environ')", "outside the allowed", id="the environment"),
    pytest.param("rg.search(pattern='x', path='link.py')", "outside the allowed", id="a link to a file outside"),
    pytest.param("rg.search(pattern='x', path='linked')", "outside the allowed", id="a link to a directory outside"),
    pytest.param("rg.search(pattern='x', path='up')", "outside the allowed", id="a link up"),
    pytest.param(f"rg.search(pattern='x', path='{USER}')", "PermissionError", id="the user's directory by its name"),
    pytest.param("rg.search(pattern='x', path='to-user')", "PermissionError", id="a link to the user's directory"),
    pytest.param(f"rg.search(pattern='{OUTSIDE}', hidden=True, ignored=True)", "[]", id="links met on the way"),
    pytest.param("rg.files(glob='../outside/*')", "[]", id="a glob that goes up"),
    pytest.param("rg.search(pattern='x', path='')", "is empty", id="an empty path"),
    pytest.param("rg.search(pattern='x', path='a\\0b')", "NUL", id="a path with a NUL"),
    # contents
    pytest.param("rg.search(pattern='needle-in-gzip')", "[]", id="a packed file"),
    pytest.param("rg.search(pattern='needle-in-binary')", "[]", id="a binary file"),
    pytest.param("rg.search(pattern='def', path='pipe.py')", "Error", id="a pipe by its name"),
    pytest.param("len(rg.search(pattern='b', glob='one-line.txt'))", "0", id="a line of millions of matches"),
    pytest.param("len(rg.search(pattern='b+', glob='one-line.txt')[0]['text'])", "500", id="a huge line"),
    pytest.param("rg.search(pattern='(b+)+c', glob='one-line.txt')", "[]", id="an expression that explodes elsewhere"),
    pytest.param("rg.search(pattern='((x{100}){100}){100}')", "size limit", id="an expression of a huge size"),
    pytest.param("rg.files(glob='bad*')", "[]", id="a name that is not text"),
    # the same for code
    pytest.param("code.symbols(path='..')", "outside the allowed directories", id="symbols above"),
    pytest.param("code.symbols(path='/usr/lib')", "outside the allowed directories", id="symbols of the system"),
    pytest.param("code.symbols(path='link.py')", "outside the allowed directories", id="symbols behind a link"),
    pytest.param(f"code.symbols(path='{USER}/secret.py')", "PermissionError", id="symbols of a hidden file"),
    pytest.param("code.definitions(name=['secret', 'private', 'tool'])", "[]", id="definitions out of bounds"),
    pytest.param("code.references(name='secret', glob='**/secret.py')", "[]", id="references in a hidden file"),
    pytest.param("code.references(name='(a+)+$')", "is not a name", id="an expression for a name"),
    pytest.param("code.symbols(glob='--pre=./evil.sh')", "[]", id="a glob like an option for code"),
    pytest.param("code.symbols(language='py --follow')", "language must be one of", id="a language with an option"),
    pytest.param("code.definitions(name='binary')", "[]", id="definitions in a binary file"),
    pytest.param("code.search(pattern='f(' * 600 + ')' * 600, language='py')", "[]", id="a deep pattern"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "expected"), SEARCHES)
def test_a_hostile_search_is_refused_or_harmless(app: CodeApp, program: str, expected: str) -> None:
    before = snapshot(app.directory.parent)
    said = "\n".join(app.reply(program).texts)
    assert expected in said
    assert OUTSIDE not in said.replace(program, "")
    assert HIDDEN not in said.replace(program, "")
    assert "root:x:" not in said
    assert snapshot(app.directory.parent) == before


REWRITES = [
    pytest.param(".git/hooks", "nothing is written below .git", id="into the hooks of git"),
    pytest.param(".git/hooks/pre-commit", "nothing is written below .git", id="into a hook by its name"),
    pytest.param(".onetool/tools/x/x_tools.py", "PermissionError", id="into a tool of the project"),
    pytest.param(f"{USER}/secret.py", "PermissionError", id="into the user's directory"),
    pytest.param("../outside/private.py", "outside the allowed", id="above"),
    pytest.param("link.py", "outside the allowed", id="through a link"),
    pytest.param("/etc", "outside the allowed", id="into the system"),
]


@pytest.mark.parametrize(("path", "expected"), REWRITES)
def test_no_rewrite_reaches_protected_files(app: CodeApp, path: str, expected: str) -> None:
    if path == ".git/hooks":
        app.write({".git/hooks/hook.py": "old(1)\n"})
    before = snapshot(app.directory.parent)
    what = "pattern='old($A)', replacement='new($A)', language='py'"
    said = app.error(f"code.rewrite({what}, path={path!r}, dry_run=False)")
    assert expected in said
    assert snapshot(app.directory.parent) == before


def snapshot(top: Path) -> dict[str, bytes]:
    """Return the content of every file that a program might have changed; the server itself writes to its own."""
    walked = ((Path(at), names) for at, _, names in os.walk(top))
    paths = [at / name for at, names in walked for name in names if USER not in at.parts or name == "secret.py"]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


# ---------------------------------------------------------------- links that take a name's place


def test_a_directory_that_turns_into_a_link_all_the_time_shows_nothing_from_outside(app: CodeApp) -> None:
    real, link, at = (app.directory / name for name in ("flip-real", "flip-link", "flip"))
    real.mkdir()
    (real / "private.py").write_text("def harmless(): ...\n")
    link.symlink_to(app.directory.parent / "outside")
    done = threading.Event()

    def flip() -> None:
        while not done.is_set():
            real.rename(at)
            at.rename(real)
            link.rename(at)
            at.rename(link)

    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        program = f"[rg.search(pattern='{OUTSIDE}'), rg.count(pattern='outside-'), code.symbols(language='py')]"
        said = [str(app.reply(program).value) for _ in range(10)]
    finally:
        done.set()
        flipping.join()
    for text in said:
        assert OUTSIDE not in text
        assert "'private'" not in text


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Generator[tuple[ModuleType, ModuleType]]:
    """The modules of the pack that need no packages of its own."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(IN_WORKERS / "_shared")
    monkeypatch.syspath_prepend(IN_WORKERS / "rg")
    yield importlib.import_module("open_tree"), importlib.import_module("rg_matches")
    for name in {"arguments", "open_tree", "rg_matches", "ripgrep_run"} - before:
        sys.modules.pop(name, None)


def test_ripgrep_is_told_to_read_no_settings_and_to_start_no_program(modules: tuple[ModuleType, ModuleType]) -> None:
    ripgrep_run = sys.modules["ripgrep_run"]
    no_settings = {"--no-config", "--no-pre", "--no-follow", "--no-search-zip", "--no-ignore-global"}
    bounds = {"--engine=default", "--no-mmap", "--regex-size-limit=10M", "--dfa-size-limit=100M"}
    quiet = {"--no-messages", "--no-ignore-messages"}  # a file that cannot be opened is no reason to fail
    assert no_settings | bounds | quiet < {*ripgrep_run.ALWAYS}
    assert {*ripgrep_run.ENVIRON} == {"PATH", "LC_ALL"}


def test_what_was_read_through_a_link_that_is_gone_again_is_not_believed(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    open_tree, rg_matches = modules
    (tmp_path / "a.txt").write_text("harmless\n")
    line = {"text": f"{OUTSIDE}\n"}
    messages = [
        {"type": "begin", "path": {"text": "./a.txt"}},
        {"type": "match", "lines": line, "line_number": 1, "absolute_offset": 0, "submatches": []},
        {"type": "match", "lines": {"bytes": base64.b64encode(b"harmless\n").decode()}, "line_number": 1}
        | {"absolute_offset": 0, "submatches": []},
    ]
    fd = os.open(tmp_path, os.O_RDONLY)
    with OpenDirectory(fd, str(tmp_path), ()) as directory, open_tree.OpenTree(directory, ".") as tree:
        found = [hit.text for hit in rg_matches.file_matches(messages, tree, 0)]
    assert found == ["harmless"]


@pytest.mark.parametrize(
    "relative",
    [
        pytest.param("link.txt", id="a link"),
        pytest.param("linked/a.txt", id="a file behind a link"),
        pytest.param("../outside/a.txt", id="a way up"),
        pytest.param("inner/../a.txt", id="a way up and down"),
        pytest.param("hidden/a.txt", id="what is hidden"),
        pytest.param("inner", id="a directory"),
        pytest.param("pipe", id="a pipe"),
        pytest.param("", id="nothing"),
        pytest.param("a.txt/b", id="a file as a directory"),
        pytest.param("a\0b", id="a NUL"),
    ],
)
def test_an_open_tree_does_not_open(modules: tuple[ModuleType, ModuleType], tmp_path: Path, relative: str) -> None:
    open_tree, _ = modules
    top = tmp_path / "top"
    for directory in (top, top / "inner", top / "hidden", tmp_path / "outside"):
        directory.mkdir()
        (directory / "a.txt").write_text("text")
    (top / "link.txt").symlink_to("a.txt")
    (top / "linked").symlink_to("inner")
    os.mkfifo(top / "pipe")
    fd = os.open(top, os.O_RDONLY)
    with OpenDirectory(fd, str(top), ("hidden",)) as directory, open_tree.OpenTree(directory, ".") as tree:
        with tree.open("inner/a.txt") as allowed:
            assert allowed is not None
        with tree.open(relative) as refused:
            assert refused is None


def test_a_rewrite_of_unknown_dot_names_asks_once_before_it_writes_anything(app: CodeApp) -> None:
    files = {"dots/a.py": "old(1)\n", "dots/b/.two/b.py": "old(2)\n", "dots/.one/c.py": "old(3)\n"}
    what = 'pattern="old($A)", replacement="new($A)", language="py", path="dots", dry_run=False'
    program = f"code.rewrite({what}, glob=['.one', '.two', '*.py'])"
    app.write(files)
    refusing, agreeing = User(NO), User(YES)
    reply = app.reply(program, asking(refusing))
    assert "the user said no" in reply.texts[-1], reply.texts
    assert {name: (app.directory / name).read_text() for name in files} == files
    reply = app.reply(program, asking(agreeing))
    assert not reply.is_error, reply.texts
    assert [(app.directory / name).read_text()[:3] for name in files] == ["new"] * 3
    (question,) = agreeing.questions
    assert len(refusing.questions) == 1
    assert question.message.startswith("code.rewrite") and ": a model wants to call it.\n" in question.message
    assert "'dots/.one', 'dots/b/.two'" in question.message
