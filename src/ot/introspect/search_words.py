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
"""
SMALL = frozenset(TEXT.split())
"""Words that say nothing of what is sought."""
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
    parts = PARTS.findall(query)
    telling = [part for part in parts if part.lower() not in SMALL]
    return list({stem(part): (part, stem(part)) for part in telling or parts}.values())


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


# ---------------------------------------------------------------- words that people use for one another

GROUPS = (
    # what is done
    "delete remove erase drop forget destroy",
    "clear empty delete",
    "list show enumerate browse display all",
    "get retrieve read show look see view",
    "fetch download get scrape crawl",
    "load import open read",
    "create add new make insert start",
    "update edit modify change alter patch",
    "replace edit update substitute",
    "set change configure put",
    "search find query lookup locate grep",
    "filter query where",
    "send post publish",
    "write save store put",
    "append add push",
    "run execute evaluate invoke",
    "rename move",
    "copy duplicate clone fork",
    "link connect relate",
    "attach attachment upload",
    "merge join combine",
    "close end stop finish dismiss",
    "close resolve finish complete transition status",
    "undo reset revert restore unstage",
    "answer reply respond comment",
    "approve accept review",
    "follow watch subscribe",
    "sort order",
    "compare diff difference change",
    "remember store memory observation fact",
    "navigate open visit go browse",
    "click press push tap",
    "enter type fill",
    "hover mouse",
    "check test validate verify",
    "calculate compute sum add",
    "save export write download",
    "start begin launch new create",
    "analyze audit inspect examine check",
    "record capture screencast trace",
    "echo repeat say",
    "compress zip gzip archive",
    "sync refresh update reload",
    "restrict limit validate allow",
    "highlight color format conditional",
    # what it is done to
    "folder directory",
    "picture image photo screenshot",
    "web website site page url internet",
    "page document doc wiki article",
    "ticket issue bug",
    "repo repository project",
    "pr pull request",
    "database db",
    "spreadsheet excel workbook sheet",
    "javascript js script",
    "user person people member colleague who",
    "permission restriction access allow permit",
    "history log changelog",
    "log hours worklog",
    "status health state",
    "ci check build pipeline status",
    "size length count number many",
    "ttl expire expiration lifetime",
    "label tag",
    "email mail",
    "message conversation chat",
    "paper article publication",
    "time date clock",
    "performance speed",
    "embedding vector similarity",
    "text string content",
    "popup dialog alert modal",
    "dropdown select option",
    "http network request call api",
    "error exception console",
    "color font bold format style",
    "setting configuration option preference",
    "entity node person",
    "cache redis key",
    "citation reference bibliography",
    "tree hierarchy structure recursive",
    "latest recent newest last",
    "duplicate repeat same",
    "pattern glob wildcard match",
    "reaction emoji react thumb",
    "version release revision",
    "video screencast recording",
    "response body content result",
    "exist there have",
    "value number cell data",
    "row column line",
    "health healthy alive status",
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
