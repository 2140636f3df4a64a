"""What a program cannot reach by itself: the network, processes, packages; and what to say about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ot.errors import InvalidSyntax, NotSupported, OneToolError, ProgramFailed, ToolError, ToolFailed
from ot.registry.tool import Tool
from ot.registry.tool_loader import load_tool
from ot.registry.tool_registry import ToolRegistry
from ot.runtime.program import Program

MOST_TOOLS = 3

NEAREST = {
    "git": (
        "git.log(limit=20)",
        "git.diff()",
        "git.status()",
        'git.show(revision="HEAD")',
        'git.blame(path="...")',
        "git.branches()",
        'git.stage(paths=["..."])',
        'git.commit(message="...")',
    ),
    "rg grep egrep fgrep ag ack": ('rg.search(pattern="...", path=".")', 'file.search(pattern="...", path=".")'),
    "find fd": ('file.glob(pattern="**/*.py")', 'rg.files(glob="*.py")'),
    "curl wget requests httpx aiohttp urllib urllib3 http socket": (
        'web.fetch(url="https://...")',
        'web.fetch(url="https://...", format="json")',
    ),
    "bs4 lxml html5lib selectolax trafilatura": (
        'web.fetch(url="https://...")',
        'web.tables(url="https://...")',
        'documents.to_markdown(path="page.html")',
    ),
    "pandas polars duckdb pyarrow csvkit xsv": (
        "data.query(sql=\"SELECT ... FROM 'sales.csv'\")",
        'data.read(table="sales.csv")',
    ),
    "sqlite3 psql mysql sqlalchemy psycopg psycopg2 pymysql aiosqlite": (
        'data.query(sql="SELECT ... FROM orders", database="shop.db")',
        'data.tables(database="shop.db")',
    ),
    "matplotlib seaborn plotly altair": ('data.chart(table="sales.csv", x="month", y="total")',),
    "openpyxl xlrd docx pptx pypdf PyPDF2 pdfplumber pdfminer fitz pymupdf markitdown mammoth pdftotext pandoc": (
        'documents.to_markdown(path="report.pdf")',
        'documents.tables(path="sales.xlsx")',
        'documents.search(text="...", paths=["report.pdf"])',
    ),
    "cat head tail less": ('file.read(path="...")',),
    "ls dir tree": ('file.list(path=".")', "file.tree()"),
    "sed awk patch": ('file.edit(path="...", old="...", new="...")', 'file.patch(diff="...")'),
    "cp": ('file.copy(source="...", target="...")',),
    "mv": ('file.move(source="...", target="...")',),
    "rm rmdir": ('file.delete(path="...")',),
    "mkdir": ('file.make_directory(path="...")',),
    "ast_grep sg tree_sitter ctags": ('code.search(pattern="...", language="python")', 'code.symbols(path=".")'),
    "pip pip3 npm": ('package.info(name="...")', 'package.versions(name="...")'),
}
"""The modules and commands that programs try, and calls of bundled tools that do the same."""

STANDARD = {
    "yaml ruamel": "write a few lines that read it; json and tomllib read JSON and TOML",
    "numpy scipy": "use lists, math and statistics",
    "dateutil arrow pendulum": "use datetime.fromisoformat() and strptime()",
    "pytz": "use zoneinfo",
    "toml tomli": "use tomllib",
    "simplejson orjson ujson": "use json",
    "regex": "use re",
    "pydantic attr attrs": "use dataclasses",
    "tabulate rich prettytable": "write f-strings, or return the rows",
    "tqdm": "leave it out",
    "jinja2": "use string.Template or f-strings",
    "dotenv": "take the values from a tool, or write them out",
}
"""What Python has itself in the place of packages that programs try."""


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
    otherwise: str = ": ot.help(query='words of the task') finds what there is"
    """What to do where no tool is known that does it."""

    def instead(self, registry: ToolRegistry, find_tools: Callable[[str], Sequence[Tool]]) -> str:
        """Return the problem, and the tools that do it, if any; *find_tools* may be slow."""
        calls = _nearest_calls(self.used, registry)
        if not calls and self.query:
            calls = [_call(tool) for tool in find_tools(self.query) if self._fits(tool)]
        if calls:
            use = f"in this workspace use {' or '.join(calls[:MOST_TOOLS])}"
            use = f"{use}: ot.help(query='{calls[0].partition('(')[0]}') shows how"
            return f"{self.what}; {use}" if self.what else use
        return self.what and f"{self.what}{self.otherwise}"

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
    otherwise=", and no tool of this workspace does it: ot.help(query='...') finds what there is",
)
PROCESSES = Reached(
    "programs cannot start processes",
    "run a shell command in a terminal",
    ("shell", "command", "commands", "terminal", "bash", "execute", "executes"),
    _names("subprocess multiprocessing pexpect sh"),
    re.compile(r"\b(subprocess|Popen|check_output|check_call|system|popen|fork|exec\w*|spawn\w*|Process)\b"),
    re.compile(r"not permitted|Permission denied|unavailable|cannot start processes|there is no os\."),
)
PLACES = (NETWORK, PROCESSES)

IMPORT_FAILURES = ("ModuleNotFoundError", "ImportError")
MISSING = re.compile(r"No module named '([\w.]+)'")
MODULE_GAP = re.compile(r"\b(?:module|import) '?([\w.]+)")
WORDS = re.compile(r"""["'!%]\s*(?:[\w./]*/)?([\w-]+)(?:\s+([\w-]+))?""")
"""The first two words of a text, which may be a command, without its directory."""
MAX_SOURCE = 10_000
BY_USER = "the user can let programs import it (engines.exact.packages)"
INSTALLS = Reached("a program installs nothing, and the standard library or a tool may do the same", "", ())
SHELL = Reached("a line that begins with ! or % is for a shell or a notebook, and a program is Python", "", ())
NO_DATABASE = "unable to open database file"
CHANGES = re.compile(r"\b(?:create|insert|update|delete|drop|alter|replace)\b", re.IGNORECASE)


def out_of_reach(error: OneToolError, program: Program | None) -> Reached | None:
    """Return what a program that failed with its own *error* tried to reach and cannot."""
    if isinstance(error, InvalidSyntax):
        return _command(SHELL, error.source.strip(), None) if error.source.lstrip().startswith(("!", "%")) else None
    if isinstance(error, NotSupported):
        modules = [found[1] for gap in error.gaps if (found := MODULE_GAP.search(gap.what))]
        return next((found for module in modules if (found := _module(module, program))), None)
    if not isinstance(error, ProgramFailed):
        return None
    if error.kind in IMPORT_FAILURES and (missing := MISSING.search(error.message)):
        return _package(_top(missing[1]), _module(missing[1], program))
    if NO_DATABASE in error.message and program and not CHANGES.search(program.source):
        return Reached("", "", (), used=("sqlite3",))
    line, text = program.line(error.line) if program else "", f"{error.kind}: {error.message}"
    place = next((place for place in PLACES if place.failures.search(text) and place.names.search(line)), None)
    return _command(PROCESSES, line, program) if place is PROCESSES else place and replace(place, used=("urllib",))


def _module(module: str, program: Program | None) -> Reached | None:
    """Return what a program wanted from *module*, if the module has a special purpose or a tool does the same."""
    place, top = next((place for place in PLACES if place.has(module)), None), _top(module)
    if place is PROCESSES:
        return _command(PROCESSES, "", program)
    if place:
        return replace(place, used=(top,))
    return Reached("", "", (), used=(top,)) if _row(NEAREST, top) else None


def _package(name: str, known: Reached | None) -> Reached:
    """Say what to do about a missing package; *known* is its purpose."""
    what = f"the package '{name}' is not installed"
    if known:
        return known if known.what else replace(known, what=what, otherwise=f"; {BY_USER}")
    if instead := _row(STANDARD, name):
        return Reached(f"{what}: {instead}", "", (), otherwise="")
    return Reached(what, name.replace("_", " "), (name.lower(),), otherwise=f"; {BY_USER}")


def _command(place: Reached, line: str, program: Program | None) -> Reached:
    """Return *place* with what may be commands in the texts of *line*, or of the whole program if it has no text."""
    found = WORDS.findall(line) or WORDS.findall(program.source[:MAX_SOURCE] if program else "")
    used = tuple(word for words in found for word in words if word)
    return INSTALLS if "install" in used[:3] else replace(place, used=used)


def missing_in_pack(call: ToolError, registry: ToolRegistry) -> str:
    """Say what to do if a pack's own code lacks a package, after a failed *call* of it; else nothing."""
    said = f"{call.kind}: {call.message}" if isinstance(call, ToolFailed) else str(call)
    name = call.tool.partition(".")[0] if isinstance(call, ToolFailed) else getattr(call, "pack", "")
    pack, missing = registry.packs.get(name), MISSING.search(said)
    if not (pack and missing and any(kind in said for kind in IMPORT_FAILURES)):
        return ""
    if pack.bundled or pack.broken or next(iter(pack.tools.values())).backend != "worker":
        return ""  # there is no header that its user could write
    needs = f"the pack '{name}' needs '{_top(missing[1])}'"
    return f"{needs}: list it in its '# /// script' header (dependencies)"


def _nearest_calls(used: Sequence[str], registry: ToolRegistry) -> list[str]:
    """Return calls of the tools that do what the first known of *used* does; ``git log`` is git.log() first."""
    for word in used:
        calls = [call for call in _row(NEAREST, word) or () if load_tool(registry, *_tool_in(call))]
        if calls:
            said = tuple(f"{word}.{other}" for other in used)
            calls.sort(key=lambda call: not call.startswith(said))
            return list(dict.fromkeys(_fitting(call, registry) for call in calls))
    return []


def _fitting(call: str, registry: ToolRegistry) -> str:
    """Return *call*, unless another pack has taken the name, whose tool takes something else."""
    tool, given = registry.tool(*_tool_in(call)), ast.parse(call, mode="eval").body
    assert isinstance(given, ast.Call)
    takes = {known.name for known in tool.parameters}
    return call if takes.issuperset(str(keyword.arg) for keyword in given.keywords) else _call(tool)


def _tool_in(call: str) -> tuple[str, str]:
    pack, _, name = call.partition("(")[0].partition(".")
    return pack, name


def _row[T](table: Mapping[str, T], word: str) -> T | None:
    return next((row for words, row in table.items() if word in words.split()), None)


def _call(tool: Tool) -> str:
    return f"{tool.full_name}({', '.join(f'{known.name}=...' for known in tool.parameters if known.required)})"


def _top(module: str) -> str:
    return module.partition(".")[0]
