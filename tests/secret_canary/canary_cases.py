"""The cases: a place in a reply, a way to write a secret and a secret each; and the judge of what was seen.

``insert: wire`` puts the escapes into the JSON text itself, so that the decoded value is the plain secret.
"""

import copy
import html
import importlib.util
import json
import math
import pathlib
import re
import sys
import urllib.parse
from collections.abc import Iterator
from typing import Any

import yaml

HERE = pathlib.Path(__file__).resolve().parent
MARK = "@@S@@"
PARTS = (
    "result",
    "error",
    "raw_line",
    "stderr",
    "http",
    "notify",
    "request",
    "response",
    "value",
    "openapi",
    "address",
)
DECODERS = (
    urllib.parse.unquote,
    urllib.parse.unquote_plus,
    html.unescape,
    lambda t: re.sub(r'\\u([0-9a-fA-F]{4})|\\(["\\/])', lambda m: chr(int(m[1], 16)) if m[1] else m[2], t),
)
DEFAULT_GIVEN = {"mcp": "env", "api": "header", "worker": "worker", "login": "access_token"}


def _load(path, name) -> Any:
    sys.path.insert(0, str(HERE))
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def secrets(reasonable_only=False) -> dict[str, str]:
    rows = yaml.safe_load((HERE / "secrets.yaml").read_text(encoding="utf-8"))
    return {r["name"]: "".join(r["parts"]) for r in rows if r.get("reasonable", True) or not reasonable_only}


def put(tree, text):
    """Replace the placeholder in every string and every key."""
    if isinstance(tree, str):
        return tree.replace(MARK, text)
    if isinstance(tree, list):
        return [put(x, text) for x in tree]
    if isinstance(tree, dict):
        return {put(k, text): put(v, text) for k, v in tree.items()}
    return tree


def cases(path=HERE / "cases.yaml", more=None) -> Iterator[dict[str, Any]]:
    places = yaml.safe_load((HERE / "places.yaml").read_text(encoding="utf-8"))
    base = _load(HERE / "transforms.py", "transforms")
    sys.modules["transforms"] = base
    forms = {**base.FORMS, **base.LIMITS}
    if more:
        places |= yaml.safe_load((pathlib.Path(more) / "places_more.yaml").read_text(encoding="utf-8"))
        extra = _load(pathlib.Path(more) / "transforms_more.py", "transforms_more")
        forms |= {**extra.FORMS, **extra.LIMITS}
    values = secrets()
    for row in yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8")):
        place = places[row["place"]]
        source = row["place"].split(".")[0]
        value = values[row["secret"]]
        form, core = forms[row["transform"]](value)
        insert = row.get("insert", "value")
        parts = {k: place[k] for k in PARTS if k in place}
        case: dict[str, Any] = {
            **row,
            "source": source,
            "insert": insert,
            "given": row.get("given")
            or place.get("given")
            or ("header" if place.get("transport") == "http" else DEFAULT_GIVEN[source]),
            "transport": place.get("transport", "http" if source == "login" else "stdio")
            if source in ("mcp", "login")
            else None,
            "reply_to": place.get("reply_to"),
            "do": place.get("do"),
            "exit": place.get("exit"),
            "connection": place.get("connection"),
            "then_result": place.get("then_result"),
            "note": place.get("note"),
            "seen_by": place.get("seen_by", ["program", "client", "log", "store"]),
            "value": value,
            "form": form,
            "core": core,
        }
        if insert == "wire":  # the JSON text, with the escaped form put in after encoding: decoded, it is plain
            body = parts.get("result") or parts.get("error") or parts["response"]["json"]
            case["wire"] = json.dumps(body, ensure_ascii=False).replace(MARK, form)
            case["reply"] = put(copy.deepcopy(parts), value)
            assert json.loads(case["wire"]) == put(copy.deepcopy(body), value), row
            case["core"] = value
        else:
            case["reply"] = put(copy.deepcopy(parts), form)
        if row["caught"] and (row["transform"] == "plain" or insert == "wire"):
            name = row["secret"] if source != "login" and "given" not in row else "*"
            case["expected"] = put(copy.deepcopy(parts), f"[secret:{name}]")
        yield case


def windows(core):
    """No run of half the core (at least 8 characters, if it has so many) may be left."""
    n = min(len(core), max(8, math.ceil(len(core) / 2)))
    return n, {core[i : i + n] for i in range(len(core) - n + 1)}


def strings(seen, errors=()):
    """Every text in what was seen: values and keys at any depth, bytes as Latin-1 and as UTF-8.

    The *errors* are those on the way to it: an error may be among its own causes.
    """
    if isinstance(seen, str):
        yield seen
    elif isinstance(seen, (bytes, bytearray)):
        yield bytes(seen).decode("latin-1")
        yield bytes(seen).decode("utf-8", "replace")
    elif isinstance(seen, dict):
        for k, v in seen.items():
            yield from strings(k, errors)
            yield from strings(v, errors)
    elif isinstance(seen, (list, tuple, set, frozenset)):
        for v in seen:
            yield from strings(v, errors)
    elif isinstance(seen, BaseException) and seen not in errors:
        said = [str(seen), repr(seen), list(seen.args), getattr(seen, "__notes__", []), vars(seen)]
        yield from strings([*said, seen.__cause__, seen.__context__], (*errors, seen))


def leaked(seen, case) -> str | None:
    """The first piece of the secret in `seen` (any value, text or exception), or None; also as JSON or repr."""
    pieces = set()
    for core in {case["core"], case["value"]}:
        for w in windows(core)[1]:
            pieces |= {w, json.dumps(w)[1:-1], json.dumps(w, ensure_ascii=False)[1:-1], repr(w)[1:-1]}
    plain = windows(case["value"])[1]
    for text in strings(seen):
        for piece in pieces:
            if piece in text:
                return piece
        for decode in DECODERS:  # the same secret in another spelling than the one sent
            decoded = decode(text)
            if decoded != text:
                for piece in plain:
                    if piece in decoded:
                        return piece
    return None
