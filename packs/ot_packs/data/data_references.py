"""Finds what SQL names as tables, such as 'sales.csv' and shop.orders, by DuckDB's parser, which opens nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from data_databases import SQLITE, Databases
from data_engine import TableEngine
from data_sources import MAX_NAME, format_of

import ot_sdk

READERS = re.compile(r"read_(?:csv|json|ndjson|parquet)(?:_auto)?|parquet_scan")
OPTIONS = {
    "header": "header",
    "delim": "delimiter",
    "sep": "delimiter",
    "delimiter": "delimiter",
    "encoding": "encoding",
}
"""How a source names an option of DuckDB's functions."""
OWN = ("main", "temp", "memory", "system", "information_schema", "pg_catalog")
"""DuckDB's own schemas and databases."""
FILE_AS_SCHEMA = re.compile(r"\b(from|join)(\s+)'([^'\n]+\.(?:db|sqlite3?))'(?=\s*\.)", re.IGNORECASE)


class Reference(NamedTuple):
    """A table that SQL names: its name, what it is made from, and how columns call it unless the SQL says otherwise."""

    name: str
    source: Any
    alias: str


class SqlReferences:
    """The tables that one statement names and that were not given."""

    def __init__(self, given: Mapping[str, Any], databases: Databases, database: str) -> None:
        """Leave *given* tables alone; other plain names are tables of *database*, if there is one."""
        self._known = {name.lower() for name in given}
        self._databases = databases
        self._database = database
        self.sources: dict[str, Any] = {}

    def take(self, sql: str, engine: TableEngine) -> str:
        """Return *sql* with each table that it names under the name that ``sources`` has for it.

        Raises:
            ValueError: It is not one statement that reads.
        """
        sql = FILE_AS_SCHEMA.sub(r'\1\2"\3"', sql)
        engine.check(sql)
        tree = engine.parse(sql)
        nodes = [*_nodes(tree)]
        self._known.update(entry["key"].lower() for node in nodes for entry in node.get("cte_map", {}).get("map", ()))
        for node in nodes:
            if found := self._reference(node):
                name = self._add(found)
                place = {"catalog_name": "", "schema_name": "", "table_name": name, "qualified_name": {"path": [name]}}
                kept = {key: node.get(key) for key in ("sample", "column_name_alias", "query_location")}
                alias = node["alias"] or found.alias
                node.clear()
                node.update(kept, **place, type="BASE_TABLE", alias=alias, at_clause=None)
        return engine.write(tree) if self.sources else sql

    def _reference(self, node: Mapping[str, Any]) -> Reference | None:
        if node.get("type") == "BASE_TABLE":
            return self._find_named(node["qualified_name"]["path"])
        return _read_by(node["function"]) if node.get("type") == "TABLE_FUNCTION" else None

    def _find_named(self, path: list[str]) -> Reference | None:
        *outer, table = path
        whole, base = ".".join(path), ".".join(outer)
        if whole.lower() in self._known:
            return None
        if _is_file(whole):
            return Reference(whole, whole, _stem(whole))
        if self._database and base.lower() in ("", "main"):
            return Reference(whole, {"database": self._database, "table": table}, table)
        if not outer or outer[0].lower() in OWN:
            return None
        if database := self._databases.find(base) or next(filter(_exists, (base + suffix for suffix in SQLITE)), ""):
            return Reference(whole, {"database": database, "table": table}, table)
        if len(outer) == 2 and (database := self._databases.find(outer[0])):
            return Reference(whole, {"database": database, "table": f"{outer[1]}.{table}"}, table)
        return None

    def _add(self, found: Reference) -> str:
        """Return the name of a table for *found*, which is the same for the same source."""
        name, number = found.name[-MAX_NAME:], 1
        while name.lower() in self._known or self.sources.get(name, found.source) != found.source:
            number += 1
            name = f"{found.name[-MAX_NAME + 5 :]}_{number}"
        self.sources[name] = found.source
        return name


def _read_by(function: Mapping[str, Any]) -> Reference | None:
    """Return what a call of one of DuckDB's readers of files stands for, where a source can say as much."""
    name, given = function["function_name"].lower(), [argument["expression"] for argument in function["arguments"]]
    texts = [_constant(part) for part in given if part["class"] == "CONSTANT"]
    if name == "sqlite_scan" and len(texts) == len(given) == 2:
        return Reference(".".join(texts), {"database": texts[0], "table": texts[1]}, texts[1])
    options = {str(_option(part)): _constant(part["right"]) for part in given if _option(part)}
    if not READERS.fullmatch(name) or len(texts) != 1 or len(texts) + len(options) != len(given):
        return None
    if not isinstance(texts[0], str) or not _is_file(texts[0]):
        return None
    source = {"path": texts[0]} | {OPTIONS[key]: value for key, value in options.items()}
    return Reference(texts[0], source if options else texts[0], _stem(texts[0]))


def _option(part: Mapping[str, Any]) -> str:
    """Return which option ``name = value`` sets; nothing where it is none that a source has."""
    if part["type"] != "COMPARE_EQUAL" or part["left"]["class"] != "COLUMN_REF" or part["right"]["class"] != "CONSTANT":
        return ""
    name = part["left"]["column_names"][-1].lower()
    return name if name in OPTIONS else ""


def _constant(part: Mapping[str, Any]) -> Any:
    literal = part["literal"]
    return literal["text"] == "true" if literal["kind"] == "BOOLEAN" else literal["text"]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case dict() as node:
                yield cast("dict[str, Any]", node)
                waiting.extend(cast("dict[str, Any]", node).values())
            case list() as parts:
                waiting.extend(cast("list[Any]", parts))
            case _:
                pass


def _is_file(name: str) -> bool:
    try:
        format_of(name)
    except ValueError:
        return False
    return "://" not in name


def _exists(path: str) -> bool:
    try:
        ot_sdk.open_file(path).close()
    except (OSError, ValueError):
        return False
    return True


def _stem(path: str) -> str:
    return PurePosixPath(path).name.partition(".")[0]
