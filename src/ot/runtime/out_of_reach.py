"""What a program cannot reach by itself: the network, processes, packages; and what to say about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ot.errors import NotSupported, OneToolError, ProgramFailed
from ot.registry.tool import Tool, signature_text
from ot.runtime.program import Program

MOST_TOOLS = 3
LONGEST = 160


@dataclass(frozen=True)
class Reached:
    """Something that a program tried to reach: how it shows, what is the matter, and how a tool for it is found."""

    what: str
    modules: frozenset[str]
    """Modules that are for nothing else."""
    names: re.Pattern[str]
    """What stands in the line that failed."""
    failures: re.Pattern[str]
    """How the failure reads, as ``Kind: message``, when such a line or module is about."""
    query: str
    words: tuple[str, ...]
    """One of them stands in the name or the description of a tool that does it."""

    def instead(self, tools: Sequence[Tool]) -> str:
        """Return what is the matter, and which of *tools* does it, if one does."""
        fit = [tool for tool in tools if self._fits(tool)][:MOST_TOOLS]
        if not fit:
            return f"{self.what}, and no tool of this workspace does it: ot.help(query='...') finds what there is"
        return f"{self.what}; in this workspace use {' or '.join(signature_text(tool)[:LONGEST] for tool in fit)}"

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
    _names("requests httpx aiohttp urllib3 urllib.request http.client socket ftplib smtplib websockets"),
    re.compile(r"\b(urlopen|urlretrieve|urllib\.request|http\.client|socket|open_connection|smtplib|ftplib|request)\b"),
    re.compile(r"\AURLError|\Agaierror|name resolution|not permitted|Permission denied"),
    "fetch a web page by url, http request",
    ("http", "https", "url", "urls", "web", "fetch", "download", "webpage", "website"),
)
PROCESSES = Reached(
    "a program starts no processes",
    _names("subprocess multiprocessing pexpect sh"),
    re.compile(r"\b(subprocess|Popen|check_output|check_call|system|popen|fork|exec\w*|spawn\w*|Process)\b"),
    re.compile(r"not permitted|Permission denied|unavailable|starts no processes"),
    "run a shell command in a terminal",
    ("shell", "command", "commands", "terminal", "bash", "execute", "executes"),
)
INPUT = Reached(
    "a program cannot ask: write the value into it",
    frozenset(),
    re.compile(r"\binput\s*\(|\bstdin\b"),
    re.compile(r"\AEOFError"),
    "ask the user a question",
    ("ask", "asks", "elicit", "prompt", "prompts"),
)
PLACES = (NETWORK, PROCESSES, INPUT)

MISSING = re.compile(r"No module named '([\w.]+)'")
MODULE_GAP = re.compile(r"\b(?:module|import) '?([\w.]+)")


def out_of_reach(error: OneToolError, program: Program | None) -> Reached | None:
    """Return what a program that failed with *error* tried to reach and cannot."""
    if isinstance(error, NotSupported):
        modules = [found[1] for gap in error.gaps if (found := MODULE_GAP.search(gap.what))]
        return next((place for name in modules for place in PLACES if place.has(name)), None)
    if not isinstance(error, ProgramFailed):
        return None
    if missing := MISSING.search(error.message):
        return next((place for place in PLACES if place.has(missing[1])), _package(missing[1]))
    line, text = program.line(error.line) if program else "", f"{error.kind}: {error.message}"
    return next((place for place in PLACES if place.failures.search(text) and place.names.search(line)), None)


def _top(module: str) -> str:
    return module.partition(".")[0]


def _package(module: str) -> Reached:
    top = _top(module)
    what = f"the package '{top}' is not installed; the user can let programs import it (engines.exact.packages)"
    nothing = re.compile(r"(?!)")
    return Reached(what, frozenset(), nothing, nothing, top.replace("_", " "), (top.lower(),))
