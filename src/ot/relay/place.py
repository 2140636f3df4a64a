"""Where the shared server of one user, build and confinement is found."""

from __future__ import annotations

import os
import stat
import sys
from binascii import crc32

RUNTIME = "/run/user"
"""Where Linux has the directory that XDG_RUNTIME_DIR names, by user."""
QUESTIONS_ENDING = ".ask"
"""What the name of a socket ends with at which the questions of a server's runs wait."""
MAX_SOCKET_PATH = 103 if sys.platform == "darwin" else 107
NAMESPACES = ("mnt", "user", "net", "pid")
CONFINED_BY = ("Seccomp:", "NoNewPrivs:", "Cap", "Groups:")
"""The lines of /proc/PID/status that say what a process may not do."""
LIMITED_BY = (
    *("Max cpu time", "Max file size", "Max data size", "Max stack size"),
    *("Max processes", "Max open files", "Max locked memory", "Max address space"),
)
"""The lines of /proc/PID/limits whose hard limits a server cannot raise, and gives to what it starts."""

PROCESS_WIDE = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "TZ"),
)
"""Variables that libraries read of their own process: the server has them, and its clients agree in them."""


class Unshared(Exception):
    """The server cannot be shared from here: the client is served alone."""


class NotNow(Unshared):
    """The server cannot be reached at this moment: it has just ended, is ending, or could not be started."""


class Hangs(Unshared):
    """The server is there and does not answer."""


class Place:
    """The files of one shared server, all of them named by its key."""

    __slots__ = ("directory", "key", "life", "log", "socket", "start")

    def __init__(self, directory: str, key: bytes) -> None:
        """Name the files in *directory* for the server of *key*."""
        self.directory = directory
        self.key = key
        base = f"{directory}/{crc32(key):08x}"
        self.socket = f"{base}.sock"
        self.life = f"{base}.life"
        self.start = f"{base}.start"
        self.log = f"{base}.log"


def why_switched_off() -> str:
    """Return why nothing is to be shared, as the user has said; empty where nothing says so."""
    if os.environ.get("ONETOOL_DAEMON", "").lower() in ("off", "0", "no", "false"):
        return "ONETOOL_DAEMON is off"
    if os.environ.get("CI"):
        return "CI is set"
    try:
        with open(f"{os.environ.get('HOME', '')}/.onetool/onetool.yaml", "rb") as settings:
            lines = [line.split(b"#")[0].split() for line in settings if line.startswith(b"daemon:")]
    except OSError:
        return ""
    # Only the plain form is seen here; the server, which reads the settings, refuses for all others.
    return "the setting daemon is off" if [b"daemon:", b"off"] in lines else ""


def find_place() -> Place:
    """Return the place of this process's shared server.

    Raises:
        Unshared: There is no private directory for it, or no home.
    """
    if not os.environ.get("HOME"):
        raise Unshared("HOME is not set")
    place = Place(private_directory(), _key())
    if len(os.fsencode(place.socket)) > MAX_SOCKET_PATH - len(f".{os.getpid()}"):
        raise Unshared(f"socket path too long: {place.socket}")
    return place


def private_directory() -> str:
    """Return the directory of this user's sockets, which nobody else can enter; it is made where it is missing.

    Raises:
        Unshared: It cannot be made, or others can enter it.
    """
    runtime = os.environ.get("TMPDIR" if sys.platform == "darwin" else "XDG_RUNTIME_DIR", "")
    # Some clients keep that variable from their servers; theirs must meet the others all the same.
    if not runtime and os.access(usual := f"{RUNTIME}/{os.getuid()}", os.W_OK):
        runtime = usual
    directory = f"{runtime.rstrip('/')}/onetool" if runtime.startswith("/") else f"/tmp/onetool-{os.getuid()}"
    try:
        if not os.path.lexists(directory):
            os.mkdir(directory, 0o700)
    except FileExistsError:
        pass  # another client was quicker
    except OSError as error:
        raise Unshared(f"{directory} cannot be made: {error.strerror}") from None
    found = os.lstat(directory)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Unshared(f"{directory} is not a directory of this user alone")
    return directory


def _key() -> bytes:
    """Return everything in which clients must agree to share a server; the kernel's limits of a process are part."""
    mask = os.umask(0o077)
    os.umask(mask)
    wide = [(name, os.environ[name]) for name in PROCESS_WIDE if name in os.environ]
    parts = [os.getuid(), mask, os.environ["HOME"], wide, sys.prefix, sys.version, _package(), build()]
    parts += [os.getpriority(os.PRIO_PROCESS, 0), _hard_limits(), confinement("self")]
    return "\n".join(map(str, parts)).encode(errors="surrogateescape").replace(b"\0", b"")


def _hard_limits() -> str:
    """Return the limits that a process cannot raise; nothing where there is no /proc."""
    try:
        with open("/proc/self/limits", encoding="utf-8") as limits:
            # Its columns have fixed widths: name, soft limit, hard limit, unit.
            return "\n".join(line[47:68].strip() for line in limits if line.startswith(LIMITED_BY))
    except OSError:
        return ""


def _package() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def source_root() -> str:
    """Return the directory that the packages are imported from."""
    return os.path.dirname(_package())


def build() -> str:
    """Return a value that changes whenever another version is installed here."""
    for place in (source_root(), *sys.path):
        try:
            names = [name for name in os.listdir(place or ".") if name.startswith("onetool_run-")]
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                return _stamp(f"{place}/{name}/RECORD")
    return ""


def _stamp(record: str) -> str:
    try:
        found = os.stat(record)
    except OSError:
        return "gone"
    return f"{record} {found.st_ino} {found.st_mtime_ns}"


def confinement(pid: int | str) -> str:
    """Return the kernel's view of a process's confinement; nothing without /proc.

    Raises:
        OSError: The process has gone, or may not be looked at.
    """
    if not sys.platform.startswith("linux"):
        return ""
    spaces = [str(os.stat(f"/proc/{pid}/ns/{name}").st_ino) for name in NAMESPACES]
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
        lines = [line.strip() for line in status if line.startswith(CONFINED_BY)]
    return "\n".join([*spaces, *lines, _label(pid)])


def _label(pid: int | str) -> str:
    """Return the profile of AppArmor or SELinux."""
    try:
        with open(f"/proc/{pid}/attr/current", encoding="utf-8", errors="replace") as label:
            return label.read().strip("\0\n")
    except OSError:  # no such module
        return ""
