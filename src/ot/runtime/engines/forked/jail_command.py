"""The commands that start a zygote, in namespaces of its own where they are available, and what it may import."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import ot
import ot_sdk
from ot.errors import EngineUnavailable, ToolUnavailable
from ot.runtime.program import Program
from ot.workers.pack_environment import PackEnvironments

JAIL = Path(__file__).parent / "jail"
INSIDE = "/onetool"
"""Where the jail's own code is mounted."""
PACKAGES = "/packages"
"""Where the user's packages are mounted."""
SYSTEM = ("/usr/lib", "/usr/lib64", "/usr/share/zoneinfo")
LINKS = ("/lib", "/lib64")
FLAGS = ("-I", "-S", "-B", "-X", "utf8", "-W", "ignore")
NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
AS_ROOT = ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
"""As root no namespace of users is needed: the zygote becomes a user that nobody is, and gives these up."""
AS_USER = ("--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL")


@dataclass(frozen=True)
class ZygoteCommand:
    """How to start a zygote, and what of the jail that alone provides."""

    argv: tuple[str, ...]
    namespaces: bool
    read_paths: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Packages:
    """A directory of installed packages that programs may import, and what is imported ahead."""

    directory: Path
    imports: tuple[str, ...]


def jail_commands(control_fd: int, *, namespaces: bool = True, packages: Packages | None = None) -> list[ZygoteCommand]:
    """Return the ways to start a jailed zygote, the strongest first."""
    python = _python()
    given: tuple[str, ...] = (str(packages.directory),) if packages else ()
    imports = packages.imports if packages else ()
    plain = ZygoteCommand((*_interpreter(python, _root(), control_fd),), False, given, imports)
    bwrap = shutil.which("bwrap", path=os.environ.get("PATH", "/usr/bin:/bin")) if namespaces else None
    if bwrap is None:
        return [plain]
    users = [AS_ROOT, AS_USER] if os.geteuid() == 0 else [AS_USER]
    return [*(_in_namespaces(bwrap, python, user, control_fd, packages) for user in users), plain]


def trusted_command(control_fd: int) -> ZygoteCommand:
    """Return the command of a zygote without a jail, in the server's own environment."""
    script = _script(_root(), control_fd, "from ot.runtime.engines.forked.jail.zygote import main")
    return ZygoteCommand((sys.executable, "-P", "-B", "-X", "utf8", "-W", "ignore", "-c", script), namespaces=False)


def _in_namespaces(
    bwrap: str, python: str, user: Sequence[str], control_fd: int, packages: Packages | None
) -> ZygoteCommand:
    argv = [bwrap, *user, *NAMESPACES, "--die-with-parent", "--new-session", "--clearenv", "--setenv", "TZ", "UTC0"]
    needed = _list_needed(python)
    for parent in dict.fromkeys(str(parent) for path in needed for parent in reversed(Path(path).parents[:-1])):
        # Else only root could look into them.
        argv += ["--perms", "0755", "--dir", parent]
    for path in needed:
        argv += ["--ro-bind-try", path, path]
    for link in LINKS:
        target = ["--symlink", str(Path(link).readlink())] if Path(link).is_symlink() else ["--ro-bind-try", link]
        argv += [*target, link]
    for inner, outer in _own_code().items():
        argv += ["--ro-bind", str(outer), f"{INSIDE}/{inner}"]
    if packages:
        argv += ["--ro-bind", str(packages.directory), PACKAGES]
    argv += ["--perms", "0755", "--dir", "/dev", "--dev-bind", os.devnull, os.devnull]
    argv += ["--remount-ro", "/", "--chdir", "/", "--"]
    given, imports = ((PACKAGES,), packages.imports) if packages else ((), ())
    return ZygoteCommand((*argv, *_interpreter(python, INSIDE, control_fd)), True, given, imports)


def _list_needed(python: str) -> list[str]:
    """Return the interpreter, its standard library and the libraries of the system."""
    variables = sysconfig.get_config_vars()
    library = Path(str(variables.get("LIBDIR", ""))) / str(variables.get("INSTSONAME", ""))
    own = [
        python,
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib", vars={"platbase": sys.base_exec_prefix}),
    ]
    return [*dict.fromkeys([*SYSTEM, *own, *([str(library)] if library.suffix != ".a" and library.is_file() else [])])]


def _own_code() -> dict[str, Path]:
    packages = ("ot", "ot/runtime", "ot/runtime/engines", "ot/runtime/engines/forked")
    files = [*(f"{package}/__init__.py" for package in packages), "ot/runtime/engines/given_time.py"]
    found = {file: Path(_root()) / file for file in files}
    return found | {"ot/runtime/engines/forked/jail": JAIL, "ot_sdk": Path(ot_sdk.__file__).parent}


def _root() -> str:
    """Return the directory that our packages are in."""
    return str(Path(ot.__file__).parents[1])


def _python() -> str:
    """Return the interpreter itself, not the environment that the server runs in."""
    base: str = getattr(sys, "_base_executable", "") or sys.executable
    return str(Path(base).resolve())


def _interpreter(python: str, root: str, control_fd: int) -> tuple[str, ...]:
    imports = (
        "from ot.runtime.engines.forked.jail import without_fork_hooks\n"
        "with without_fork_hooks(): from ot.runtime.engines.forked.jail.zygote import main"
    )
    return (python, *FLAGS, "-c", _script(root, control_fd, imports))


def _script(root: str, control_fd: int, imports: str) -> str:
    return (
        f"import sys; sys.path.insert(0, {root!r})\n{imports}\nsys.path.remove({root!r}); main({control_fd})"
        # By this a zygote that has outlived its server is known.
        f" # of server {os.getpid()}"
    )


SETTING = "engines.exact.packages"
FILE = "packages.py"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
INSTALL_SECONDS = 600.0


class AnalysisPackages:
    """Makes one environment of *requirements*, kept for good; it has nothing to do with the server's own."""

    def __init__(self, requirements: Sequence[str], environments: PackEnvironments) -> None:
        """Install *requirements* where the environments of packs are kept."""
        self.requirements = tuple(requirements)
        self._environments = environments

    async def install(self) -> Packages:
        """Install the packages and return where they are; raise EngineUnavailable if that fails."""
        dependencies = ", ".join(json.dumps(requirement) for requirement in self.requirements)
        lines = ("/// script", f'requires-python = "=={VERSION}.*"', f"dependencies = [{dependencies}]", "///")
        header = "".join(f"# {line}\n" for line in lines)
        try:
            found = await self._environments.prepare(SETTING, {FILE: header.encode()}, FILE, budget=INSTALL_SECONDS)
        except ToolUnavailable as error:
            raise EngineUnavailable("exact", f"{SETTING} cannot be installed: {error.why}") from None
        return Packages(site_packages(found.python), self._names())

    async def aclose(self) -> None:
        """Stop what is under way."""
        await self._environments.aclose()

    def _names(self) -> tuple[str, ...]:
        names = [NAME.match(requirement.strip()) for requirement in self.requirements]
        return tuple(name.group().replace("-", "_") for name in names if name)


def site_packages(python: Path) -> Path:
    """Return where the environment of *python* keeps its packages."""
    return python.parent.parent / "lib" / f"python{VERSION}" / "site-packages"


def imports_packages(program: Program) -> bool:
    """Return whether *program* imports anything that is not in the standard library."""
    names = (name for node in program.nodes_of(ast.Import, ast.ImportFrom) for name in _list_imports(node))
    return any(name.partition(".")[0] not in sys.stdlib_module_names for name in names)


def _list_imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
