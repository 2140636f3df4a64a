"""Reference for the transformations: FORMS[name](secret) -> (form, core).

`form` is what the server writes at the placeholder. `core` is the part of it that depends on the secret alone
(for base64 inside a longer text the characters at both ends also depend on the neighbours): it must not be seen.
"""

import base64
import codecs
import hashlib
import html
import json
import urllib.parse
import zlib
from html.entities import html5


def _same(f):
    return lambda s: (f(s), f(s))


def _aligned(before: bytes, after: bytes, altchars=None, pad=True, prefix=""):
    def form(s):
        raw = s.encode()
        whole = base64.b64encode(before + raw + after, altchars).decode()
        start = -(-len(before) * 8 // 6)
        end = (len(before) + len(raw)) * 8 // 6
        return prefix + (whole if pad else whole.rstrip("=")), whole[start:end]

    return form


def _percent(s, keep, spell="%%%02X"):
    return "".join(c if keep(c) else "".join(spell % b for b in c.encode()) for c in s)


def _units(c):
    raw = c.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]


def _u(s, which, spell="\\u%04x"):
    """JSON text of s with the characters that `which` chooses as \\uXXXX, the others as JSON needs them."""
    return "".join(
        "".join(spell % u for u in _units(c)) if which(i, c) else json.dumps(c, ensure_ascii=False)[1:-1]
        for i, c in enumerate(s)
    )


_UNRESERVED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_NAMED: dict[str, str] = {v: "&" + k for k, v in sorted(html5.items()) if k.endswith(";") and len(v) == 1}

FORMS = {
    "plain": _same(lambda s: s),
    # base64
    "b64": _aligned(b"", b""),
    "b64_in_0": _aligned(b"id:", b";v=1"),
    "b64_in_1": _aligned(b"key:", b";v=1"),
    "b64_in_2": _aligned(b"token", b";v=1"),
    "b64_nopad": _aligned(b"", b"", pad=False),
    "b64url": _aligned(b"", b"", b"-_"),
    "b64url_nopad": _aligned(b"", b"", b"-_", pad=False),
    "b64url_in_1": _aligned(b"key:", b";v=1", b"-_"),
    "basic_me": _aligned(b"me:", b"", prefix="Basic "),
    "basic_api": _aligned(b"api:", b"", prefix="Basic "),
    "basic_x": _aligned(b"x:", b"", prefix="Basic "),
    "basic_as_user": _aligned(b"", b":", prefix="Basic "),
    # hex
    "hex": _same(lambda s: s.encode().hex()),
    "hex_upper": _same(lambda s: s.encode().hex().upper()),
    # percent-encoding
    "pct_full": _same(lambda s: _percent(s, lambda c: False)),
    "pct_full_lower": _same(lambda s: _percent(s, lambda c: False, "%%%02x")),
    "pct_component": _same(lambda s: _percent(s, lambda c: c in _UNRESERVED)),
    "pct_component_lower": _same(lambda s: _percent(s, lambda c: c in _UNRESERVED, "%%%02x")),
    "pct_keep_slash": _same(lambda s: urllib.parse.quote(s)),
    "pct_form": _same(lambda s: urllib.parse.quote_plus(s)),
    # JSON escapes, one level
    "json_min": _same(lambda s: json.dumps(s, ensure_ascii=False)[1:-1]),
    "json_ascii": _same(lambda s: json.dumps(s)[1:-1]),
    "json_u_all": _same(lambda s: _u(s, lambda i, c: True)),
    "json_u_all_upper": _same(lambda s: _u(s, lambda i, c: True, "\\u%04X")),
    "json_u_one": _same(lambda s: _u(s, lambda i, c: i == len(s) // 2)),
    "json_go": _same(lambda s: _u(s, lambda i, c: c in "<>&\u2028\u2029")),
    "json_php": _same(lambda s: json.dumps(s)[1:-1].replace("/", "\\/")),
    # JSON in a string, and that in a string again
    "json_string": _same(lambda s: json.dumps(json.dumps(s)[1:-1])[1:-1]),
    # HTML
    "html_named": _same(lambda s: html.escape(s)),
    "html_dec": _same(lambda s: "".join(f"&#{ord(c)};" for c in s)),
    "html_hex": _same(lambda s: "".join(f"&#x{ord(c):x};" for c in s)),
    "html_hex_upper": _same(lambda s: "".join(f"&#X{ord(c):X};" for c in s)),
    "html_apos": _same(lambda s: html.escape(s, quote=False).replace('"', "&#34;").replace("'", "&apos;")),
    "html5_names": _same(lambda s: "".join(_NAMED.get(c) or c if c.isascii() else c for c in s)),
}


def _every(n, s, between):
    return between.join(s[i : i + n] for i in range(0, len(s), n))


# What is not caught: the page must name these classes. Catching one is no failure.
LIMITS = {
    "reversed": _same(lambda s: s[::-1]),
    "spaced": _same(lambda s: " ".join(s)),
    "split_in_4": _same(lambda s: _every(4, s, " | ")),
    "hex_colons": _same(lambda s: ":".join(f"{b:02x}" for b in s.encode())),
    "b64_lines": _same(lambda s: _every(20, base64.b64encode(s.encode()).decode(), "\n")),
    "char_codes": _same(lambda s: ", ".join(str(ord(c)) for c in s)),
    "sha256": _same(lambda s: hashlib.sha256(s.encode()).hexdigest()),
    "rot13": _same(lambda s: codecs.encode(s, "rot13")),
    "xor_b64": _same(lambda s: base64.b64encode(bytes(b ^ 0x5A for b in s.encode())).decode()),
    "zlib_b64": _same(lambda s: base64.b64encode(zlib.compress(s.encode())).decode()),
    "b64_twice": _same(lambda s: base64.b64encode(base64.b64encode(s.encode())).decode()),
    "utf16_b64": _same(lambda s: base64.b64encode(s.encode("utf-16-le")).decode()),
    "swapcase": _same(lambda s: s.swapcase()),
    "part_half": _same(lambda s: s[: len(s) // 2]),
}
