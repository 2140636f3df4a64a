"""Words as the search compares them: names taken apart, endings taken off, and those that stand for one another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise

PARTS = re.compile(r"[A-Z]+(?![^\W\dA-Z_])|[A-Z]?[^\W\dA-Z_]+|\d+")
"""``getUserID``, ``get_user_id`` and ``get user ID`` have the same parts."""

TEXT = """
a about all am an and any are as at be been but by can could did do does for from had has have how i if in into is it
its just let like may me my need of on one or our out please should so some something than that the their them then
there these this those to up us use using via want was we were what when where which will with would you your
across again already also between during here only over per still very while within yet
"""
SMALL = frozenset(TEXT.split())
"""Words that say nothing of what is sought."""
FILLERS = re.compile(r"\b(?:right now|at the moment)\b", re.IGNORECASE)
"""Phrases that say nothing of what is sought, though their words may."""
BETWEEN = re.compile(r"[,;:.!?\n]\s|\b(?:and|then|after that|afterwards)\b", re.IGNORECASE)
WHOLE = re.compile(r"[^\W_]+")
MAX_TEXT = 1_000
"""Characters of a text that are looked at: beyond them stand examples and small print."""


def words_of(text: str) -> list[str]:
    """Return the words of *text* as stems; one that has parts is there as a whole, too."""
    return [word for whole in WHOLE.findall(text[:MAX_TEXT]) for word in _stems(whole)]


@lru_cache(maxsize=50_000)
def _stems(whole: str) -> tuple[str, ...]:
    parts = [] if whole.islower() or whole.istitle() else PARTS.findall(whole)
    return (stem(whole), *(stem(part) for part in parts if len(parts) > 1))


def sought_words(query: str) -> list[tuple[str, str]]:
    """Return the words of a query that say something, each as it was written and as its stem."""
    parts = PARTS.findall(FILLERS.sub(" ", query)) or PARTS.findall(query)
    telling = [part for part in parts if part.lower() not in SMALL]
    return list({stem(part): (part, stem(part)) for part in telling or parts}.values())


def clauses(query: str) -> list[str]:
    """Return the parts of a query that may be intents of their own, those that say something."""
    return [part for part in BETWEEN.split(query) if any(word.lower() not in SMALL for word in PARTS.findall(part))]


def joined_words(query: str) -> list[tuple[str, str]]:
    """Return each two neighbours of a query as one word: ``drop-down`` and ``dropDown`` are also ``dropdown``."""
    parts = PARTS.findall(query)
    return [(f"{first} {second}", stem(first + second)) for first, second in pairwise(parts)]


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return *word* in small letters without its ending, roughly: words that agree in that mean the same."""
    word = _without_plural(word.lower())
    for ending, shortest in (("ing", 3), ("ed", 3), ("er", 4), ("ion", 5)):
        if word.endswith(ending) and len(word) - len(ending) >= shortest and word[-len(ending) - 1] not in "e":
            word = _undoubled(word[: -len(ending)])
            break
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def _without_plural(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def _undoubled(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls" else word


# ---------------------------------------------------------------- what is to be done

ACTION_WORDS = {
    "read": "get list read show find search fetch view retrieve describe query look see "
    "what which who how when where is are does do did am",
    "make": "create add new make insert write post open start draft send put upload push build compose",
    "change": "update edit change set modify rename patch replace correct move mark",
    "delete": "delete remove erase drop clear forget cancel destroy wipe purge rm take",
}
ACTIONS = {word: action for action, words in ACTION_WORDS.items() for word in words.split()}


def action_of(text: str) -> str:
    """Return what the first telling word of a query or a name asks to be done, or nothing."""
    words = (part.lower() for part in PARTS.findall(text))
    return next((ACTIONS[word] for word in words if word in ACTIONS), "")


# ---------------------------------------------------------------- words that people use for one another

GROUPS: tuple[str, ...] = (
    # what is done
    "delete remove erase drop forget destroy purge rm trash discard",
    "clear empty delete wipe",
    "list show enumerate browse display all ls",
    "get retrieve read show look see view obtain",
    "fetch download get scrape crawl pull",
    "load import open read",
    "create add new make insert start open",
    "build compile make",
    "update edit modify change alter patch adjust correct",
    "replace edit update substitute swap",
    "set change configure put",
    "put insert place add write",
    "search find query lookup locate grep seek",
    "filter query where narrow",
    "send post publish write tell",
    "tell notify inform message announce post",
    "write save store put record overwrite",
    "write compose draft create author",
    "append add push",
    "run execute evaluate invoke start launch",
    "rename move mv",
    "move transfer reschedule relocate shift",
    "copy duplicate clone fork cp",
    "link connect relate associate relation",
    "attach attachment upload",
    "upload put push import",
    "merge join combine",
    "split separate divide",
    "close end stop finish dismiss terminate kill quit",
    "cancel end stop abort unsubscribe",
    "close resolve finish complete transition status done",
    "undo reset revert restore unstage",
    "stage add index staging",
    "commit record save",
    "answer reply respond comment",
    "comment note remark annotation feedback",
    "approve accept review confirm",
    "accept confirm handle",
    "follow watch subscribe listen",
    "unwatch stop unsubscribe unfollow",
    "assign give assignee owner responsible",
    "share give access permission invite",
    "invite attendee invitation guest",
    "sort order rank",
    "compare diff difference change",
    "remember store memory observation fact learn know",
    "know knowledge memory",
    "navigate open visit go browse",
    "click press push tap button",
    "enter type fill input",
    "hover mouse",
    "wait until appear disappear gone",
    "check test validate verify",
    "calculate compute sum add",
    "export save write download convert",
    "convert turn transform translate",
    "start begin launch new create",
    "restart rollout reload reboot",
    "switch checkout select change go toggle",
    "select choose pick",
    "analyze audit inspect examine check",
    "explain plan why describe",
    "describe detail information info about explain",
    "suggest recommend propose advise",
    "record capture screencast trace",
    "echo repeat say",
    "compress zip gzip archive",
    "archive trash",
    "sync refresh update reload",
    "restrict limit validate allow",
    "hide hidden visibility show",
    "highlight color format conditional",
    "pop remove take",
    "scale replica resize grow",
    "pay payment charge money checkout",
    "refund return money back",
    "deploy apply rollout release",
    "control turn switch on off",
    # what it is done to
    "folder directory dir",
    "mkdir create make directory",
    "file document",
    "picture image photo screenshot logo icon",
    "web website site page url internet link address",
    "page document doc wiki article",
    "section chapter part paragraph heading",
    "paragraph block text",
    "outline table content toc heading tree",
    "ticket issue bug task story",
    "error issue problem crash failure bug",
    "repo repository project",
    "pr pull request",
    "mr merge request",
    "database db",
    "table database data",
    "sql query statement",
    "spreadsheet excel workbook sheet xlsx",
    "tab sheet worksheet page",
    "macro vba code",
    "header head top title",
    "freeze pane frozen",
    "formula calculation",
    "sparkline small chart mini",
    "chart graph plot diagram",
    "goal target wanted",
    "separator number format",
    "javascript js script",
    "user person people member colleague who account customer",
    "customer client buyer",
    "permission restriction access allow permit restrict",
    "history log changelog",
    "log output console stdout",
    "log hours worklog",
    "time hour duration long",
    "duration time long sla",
    "status health state",
    "ci check build pipeline status green pass",
    "size length count number many",
    "size bytes large big",
    "ttl expire expiration lifetime live minutes seconds",
    "label tag category",
    "email mail inbox",
    "message conversation chat post",
    "channel room team",
    "paper article publication preprint",
    "news article headline",
    "subject topic theme",
    "passage text excerpt",
    "time date clock",
    "calendar meeting appointment event schedule",
    "free busy available slot",
    "forecast weather rain temperature",
    "warning alert storm",
    "direction route way drive travel",
    "distance travel far",
    "map place location address",
    "restaurant place shop business",
    "performance speed slow vital",
    "slow slowest speed performance network throttle",
    "network connection offline",
    "viewport mobile device emulate resize",
    "embedding vector similarity",
    "text string content",
    "popup dialog alert modal box prompt confirm",
    "dropdown select option entry",
    "shortcut key keyboard combination",
    "login sign form",
    "http network request call api",
    "error exception console",
    "stack trace exception error",
    "color font bold format style background fill italic border colour",
    "setting configuration option preference",
    "entity node person",
    "cache redis key",
    "queue list",
    "leaderboard ranking score sort",
    "event entry stream",
    "type kind sort",
    "citation reference bibliography bibtex",
    "tree hierarchy structure recursive",
    "latest recent newest last",
    "older previous historical version history earlier",
    "duplicate repeat same",
    "pattern glob wildcard match every",
    "line row",
    "reaction emoji react thumb smiley",
    "version release revision",
    "video screencast recording movie",
    "transcript subtitle caption spoken",
    "response body content result",
    "exist there have",
    "value number cell data",
    "row column line record",
    "field property column attribute",
    "member element item value",
    "item element entry",
    "due deadline date",
    "parent epic",
    "many multiple several batch bulk once",
    "template boilerplate",
    "health healthy alive status",
    "server service machine host",
    "container docker image",
    "pod container kubernetes",
    "cluster kubernetes namespace",
    "plan subscription recurring",
    "bill invoice",
    "balance money account funds",
    "device light lamp thermostat sensor",
    "documentation doc manual reference",
    "library package framework module",
    "shell bash command terminal cli",
    "process task program",
    "untracked status working",
    "variable token",
    "bucket object storage",
    "colleague coworker teammate person user somebody someone",
    "crash fail broken error down",
    "unstage reset index",
    "appearance look format style screenshot",
    "author creator writer",
    "cat read print",
    "contact customer person",
    "cron schedule timer",
    "credential secret password token",
    "fact observation information",
    "function method code symbol",
    "host domain dns",
    "incident outage alert error",
    "job run task workflow",
    "language translate locale",
    "metric figure statistics measure",
    "milestone version release sprint",
    "my me self own assign assignee",
    "nearest near close around",
    "order purchase payment",
    "path route file",
    "phone call telephone",
    "quantity amount number",
    "reminder task todo",
    "review feedback comment approve",
    "rule policy filter",
    "sound audio music song track",
    "summary summarize overview",
    "thread conversation reply",
    "translate convert language",
    "zone timezone region",
    "picture image drawing illustration png jpg svg",
    "headline news press story",
    "define definition declare declaration implement",
    "use usage reference caller call",
    "syntax structure block statement",
    "word docx document",
    "slide presentation deck powerpoint pptx",
    "excel xlsx csv sheet table",
    "dataset data table csv",
    "profile describe statistics",
    "match join compare",
    "schema column table structure",
    "wrote author write who",
    "record row",
    "hit match occurrence",
    "commit uncommitted change status",
    "convention guideline guide rule standard policy",
    "classify categorize label",
    "lately recent last newest",
    "rest more next remaining truncate cut",
    "display show view",
    "breaking change changelog",
    "vulnerability cve security",
    "license licence",
    "dead broken alive reachable",
    "parallel concurrent many once",
    "largest biggest top most heaviest slowest expensive",
    "day hour time date yesterday today",
    "trace span distributed",
    "postpone delay reschedule move",
    "right permission access role share",
    "street address road house",
    "altitude elevation height",
    "coordinate latitude longitude position gps",
    "temperature sensor thermostat heating warm cold",
    "bedroom kitchen room house home door lock",
    "npm install script command",
    "restart crash event",
    "monthly recurring subscription",
    "umbrella rain weather sunny wind forecast",
    "hotel cafe pharmacy place nearby business",
    "unread inbox mail",
    "spam filter rule",
    "attach attachment file",
    "mockup design layout component",
    "clip video talk youtube",
    "tunnel port forward localhost expose",
    "deployment replica pod kubernetes",
    "temporary presign signed expire",
    "cause root reason why",
    "reason think step plan",
    "cpu memory usage load",
    "pid process",
    "index key performance",
    "sprint cycle iteration",
    "severity priority urgent",
    "backup copy snapshot",
    "draft unsent prepare",
    "vacation holiday busy free",
    "lyrics transcript",
    "background job run",
    "yaml configuration settings",
    "test check",
    "regex regexp regular expression pattern",
    "old original earlier former revision",
    "decide decision note agree",
    "crosstab tabulation pivot aggregate",
    "print output log",
    "newsletter mail email",
    "cancel delete remove",
    "price cost amount money",
    "month year week date",
    "average mean sum aggregate group",
    "boss sender from colleague",
    "snippet template reusable",
    "running alive health status",
    "fix repair solve resolve",
    "dependency package requirement library",
    "react django numpy pandas library package",
    "sqlite postgres mysql database sql",
    "variable name symbol",
    "lamp bulb light dim",
    "museum station restaurant place",
    "bike car train walk route direction",
    "free text string",
    "json schema structured field extract",
    "site online address reachable alive",
    "hyperlink href link",
)
"""Each line is one group; a word may stand in several."""


def synonyms() -> Mapping[str, frozenset[str]]:
    """Return for each stem the others that may be meant."""
    found: dict[str, set[str]] = {}
    for group in GROUPS:
        stems = {stem(word) for word in group.split()}
        for word in stems:
            found.setdefault(word, set()).update(stems - {word})
    return {word: frozenset(others) for word, others in found.items()}
