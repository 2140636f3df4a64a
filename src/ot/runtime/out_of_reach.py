"""What a program cannot reach by itself: the network, processes, packages; and what to say about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ot.errors import NotSupported, OneToolError, ProgramFailed, ToolError, ToolFailed
from ot.registry.tool import Tool
from ot.registry.tool_loader import loaded_tool
from ot.registry.tool_registry import ToolRegistry
from ot.runtime.program import Program

MOST_TOOLS = 3

NEAREST = {
    "git": "git.log git.diff git.show",
    "rg grep egrep fgrep ag ack": "rg.search rg.count",
    "find fd": "rg.files file.glob",
    "curl wget requests httpx aiohttp urllib urllib3 http socket bs4": "web.fetch web.fetch_many",
    "pandas polars duckdb sqlite3 sqlalchemy pyarrow csv": "data.query data.describe",
    "matplotlib seaborn plotly altair": "data.chart",
    "openpyxl xlrd docx pptx pypdf PyPDF2 pdfplumber fitz markitdown pdftotext pandoc": (
        "documents.to_markdown documents.tables documents.search"
    ),
    "cat head tail": "file.read",
    "ls tree": "file.list file.tree",
    "sed awk": "file.edit file.search",
    "pip npm": "package.info package.versions",
}
"""The modules and commands that programs try, and the tools that do the same."""


@dataclass(frozen=True)
class Reached:
    """Something that a program tried to reach: how it shows, what is the matter, and how a tool for it is found."""

    what: str
    query: str
    words: tuple[str, ...]
    """One of them stands in the name or the description of a tool that does it."""
    modules: frozenset[str] = frozenset()
    """Modules that are for nothing else."""
    names: re.Pattern[str] = re.compile(r"(?!)")
    """What stands in the line that failed."""
    failures: re.Pattern[str] = re.compile(r"(?!)")
    """How the failure reads, as ``Kind: message``, when such a line or module is about."""
    used: tuple[str, ...] = ()
    """The modules and commands that the program used for it."""

    def instead(self, registry: ToolRegistry, find_tools: Callable[[str], Sequence[Tool]]) -> str:
        """Return what is the matter, and which tools do it, if one does; *find_tools* may take its time."""
        nearest = (loaded_tool(registry, *name.split(".")) for name in _nearest(self.used))
        fit = [tool for tool in nearest if tool] or [tool for tool in find_tools(self.query) if self._fits(tool)]
        if fit:
            calls = " or ".join(_call(tool) for tool in fit[:MOST_TOOLS])
            use = f"in this workspace use {calls}: ot.help(query='{fit[0].full_name}') shows how"
            return f"{self.what}; {use}" if self.what else use
        return (
            self.what
            and f"{self.what}, and no tool of this workspace does it: ot.help(query='...') finds what there is"
        )

    def has(self, module: str) -> bool:
        """Return whether *module* is for this alone."""
        return module in self.modules or _top(module) in self.modules

    def _fits(self, tool: Tool) -> bool:
        said = set(re.findall(r"[a-z]+", f"{tool.full_name} {tool.description}".lower()))
        return tool.pack not in ("ot", "proj", "file") and not said.isdisjoint(self.words)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


NETWORK = Reached(
    "a program has no network access",
    "fetch a web page by url, http request",
    ("http", "https", "url", "urls", "web", "fetch", "download", "webpage", "website"),
    _names("requests httpx aiohttp urllib3 urllib.request http.client socket ftplib smtplib websockets"),
    re.compile(r"\b(urlopen|urlretrieve|urllib\.request|http\.client|socket|open_connection|smtplib|ftplib|request)\b"),
    re.compile(r"\AURLError|\Agaierror|name resolution|not permitted|Permission denied"),
)
PROCESSES = Reached(
    "a program starts no processes",
    "run a shell command in a terminal",
    ("shell", "command", "commands", "terminal", "bash", "execute", "executes"),
    _names("subprocess multiprocessing pexpect sh"),
    re.compile(r"\b(subprocess|Popen|check_output|check_call|system|popen|fork|exec\w*|spawn\w*|Process)\b"),
    re.compile(r"not permitted|Permission denied|unavailable|starts no processes|there is no os\."),
)
INPUT = Reached(
    "a program cannot ask: write the value into it",
    "ask the user a question",
    ("ask", "asks", "elicit", "prompt", "prompts"),
    names=re.compile(r"\binput\s*\(|\bstdin\b"),
    failures=re.compile(r"\AEOFError"),
)
PLACES = (NETWORK, PROCESSES, INPUT)

IMPORT_FAILURES = ("ModuleNotFoundError", "ImportError")
MISSING = re.compile(r"No module named '([\w.]+)'")
MODULE_GAP = re.compile(r"\b(?:module|import) '?([\w.]+)")
COMMAND = re.compile(r"""["'](?:[\w./]*/)?(\w+)""")
"""The first word of a text, which may be a command, without its directory."""
MAX_SOURCE = 10_000


def out_of_reach(error: OneToolError, program: Program | None) -> Reached | None:
    """Return what a program that failed with *error*, which is its own, tried to reach and cannot."""
    if isinstance(error, NotSupported):
        modules = [found[1] for gap in error.gaps if (found := MODULE_GAP.search(gap.what))]
        return next((found for module in modules if (found := _module(module, "", program))), None)
    if not isinstance(error, ProgramFailed):
        return None
    if error.kind in IMPORT_FAILURES and (missing := MISSING.search(error.message)):
        package = f"the package '{_top(missing[1])}' is not installed"
        return _module(missing[1], f"{package}; the user can let programs import it (engines.exact.packages)", program)
    line, text = program.line(error.line) if program else "", f"{error.kind}: {error.message}"
    place = next((place for place in PLACES if place.failures.search(text) and place.names.search(line)), None)
    used = {PROCESSES.what: _commands(line, program), NETWORK.what: ("urllib",)}
    return replace(place, used=used.get(place.what, ())) if place else None


def _module(module: str, what: str, program: Program | None) -> Reached | None:
    """Return what a program wanted of *module*; *what* is the matter with one that is for nothing special."""
    top = _top(module)
    if place := next((place for place in PLACES if place.has(module)), None):
        return replace(place, used=_commands("", program) if place is PROCESSES else (top,))
    return Reached(what, top.replace("_", " "), (top.lower(),), used=(top,)) if what or _nearest((top,)) else None


def _commands(line: str, program: Program | None) -> tuple[str, ...]:
    """Return what may be commands in the texts of *line*, or of the whole program where that line has no text."""
    return tuple(COMMAND.findall(line) or COMMAND.findall(program.source[:MAX_SOURCE] if program else ""))


def missing_in_pack(call: ToolError, registry: ToolRegistry) -> str:
    """Return what to do about a pack whose own code lacks a package, for a failed *call* of it; else nothing."""
    said = f"{call.kind}: {call.message}" if isinstance(call, ToolFailed) else str(call)
    name = call.tool.partition(".")[0] if isinstance(call, ToolFailed) else getattr(call, "pack", "")
    pack, missing = registry.packs.get(name), MISSING.search(said)
    if not (pack and missing and any(kind in said for kind in IMPORT_FAILURES)):
        return ""
    if pack.bundled or pack.broken or next(iter(pack.tools.values())).backend != "worker":
        return ""  # there is no header that its user could write
    needs = f"the pack '{name}' needs '{_top(missing[1])}'"
    return f"{needs}: list it in its '# /// script' header (dependencies)"


def _nearest(used: Sequence[str]) -> Iterator[str]:
    return (
        name for word in used for words, names in NEAREST.items() if word in words.split() for name in names.split()
    )


def _call(tool: Tool) -> str:
    return f"{tool.full_name}({', '.join(f'{known.name}=...' for known in tool.parameters if known.required)})"


def _top(module: str) -> str:
    return module.partition(".")[0]
