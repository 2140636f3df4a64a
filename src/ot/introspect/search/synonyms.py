"""Words that people use for one another when they look for a tool."""

from __future__ import annotations

from collections.abc import Mapping

from ot.introspect.search.words import stem

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
