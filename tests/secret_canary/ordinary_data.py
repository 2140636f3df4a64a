"""10 MiB of ordinary data in which no reasonable secret occurs in any form; it holds near misses on purpose.

``pieces()`` yields (file name, text) in a fixed order, each text about 100 kB; the same on every machine.
"""

import base64
import hashlib
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from secret_canary.canary_cases import secrets

WORDS = Path(__file__).with_name("ordinary_words.txt").read_text(encoding="utf-8").split()
_rng = random.Random(31)


def _r(n):
    return int(_rng.random() * n)


def _pick(seq):
    return seq[_r(len(seq))]


def _hex(n):
    return f"{_rng.getrandbits(4 * n):0{n}x}"


def _bytes(n):
    return _rng.getrandbits(8 * n).to_bytes(n, "big")


def _uuid():
    h = _hex(32)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def _b64(n, url=False):
    return (base64.urlsafe_b64encode if url else base64.b64encode)(_bytes(n)).decode()


def _words(n):
    return " ".join(_pick(WORDS) for _ in range(n))


def _date():
    return f"20{20 + _r(7)}-{1 + _r(12):02d}-{1 + _r(28):02d}T{_r(24):02d}:{_r(60):02d}:{_r(60):02d}.{_r(1000):03d}Z"


def _url():
    q = "&".join(
        f"{_pick(WORDS[:80])}={_pick([_hex(8), 'a%20b', '%2Fx%2fy', '%C3%BC', '1', 'p%40q'])}" for _ in range(1 + _r(4))
    )
    return f"https://{_pick(WORDS[20:80])}.example.invalid/{_pick(WORDS[20:80])}/{_hex(6)}?{q}"


def _near(values):
    """A value that begins as a secret does (its first third) and goes on differently; sometimes encoded."""
    s = _pick(values)
    s = s[: max(4, len(s) // 3)] + _b64(len(s) // 2 + 6, url=True)
    return _pick(
        [
            s,
            base64.b64encode(s.encode()).decode(),
            "Basic " + base64.b64encode(b"me:" + s.encode()).decode(),
            s.encode().hex(),
            "".join(f"%{b:02X}" for b in s.encode()),
            "".join(f"&#{ord(c)};" for c in s),
            "".join(f"\\u{ord(c) & 0xFFFF:04x}" for c in s),
        ]
    )


def _image():
    w, h = 32 + _r(60), 32 + _r(60)
    rows, v = bytearray(), 128
    for _ in range(w * h):
        v = (v + _r(9) - 4) & 255
        rows += bytes((v, v ^ 8, 255 - v, 255))
    head = (
        b"BM"
        + struct.pack("<IHHI", 54 + len(rows), 0, 0, 54)
        + struct.pack("<IiiHHIIiiII", 40, w, h, 1, 32, 0, len(rows), 2835, 2835, 0, 0)
    )
    return base64.b64encode(head + bytes(rows)).decode()


def _record(values):
    return {
        "id": _uuid(),
        "etag": f'W/"{_hex(16)}"',
        "user": {
            "name": _words(2),
            "role": _pick(["admin", "public", "editor"]),
            "email": f"{_hex(6)}@example.invalid",
        },
        "data": {"blob": _b64(30), "n": _r(10**9), "x": _rng.random(), "ok": True, "none": None},
        "links": {"self": _url(), "next": _url()},
        "html": f'<p class="{_pick(WORDS)}">{_words(4)} &amp; {_words(2)} &lt;{_r(9)}&gt; '
        f"&quot;{_pick(WORDS)}&quot; &#39;</p>",
        "text": _words(12),
        "inner": json.dumps({"t": _words(3), "q": 'a"b\\c', "ü": _hex(8)}),
        "token_like": _near(values),
        "created": _date(),
    }


def _json(values):
    return json.dumps([_record(values) for _ in range(85)], ensure_ascii=bool(_r(2)), indent=_pick([None, 1]))


def _ndjson(values):
    return "".join(json.dumps(_record(values), ensure_ascii=bool(_r(2))) + "\n" for _ in range(85))


def _log(values):
    out = []
    for _ in range(560):
        out.append(
            f"{_date()} {_pick(['INFO', 'WARN', 'ERROR', 'DEBUG'])} [{_hex(12)}] "
            f"{_pick(WORDS)}.{_pick(WORDS)}: {_words(6)} "
            + _pick(
                [
                    f"GET {_url()} 200 {_r(900)}ms",
                    f"Authorization: Basic {_b64(18)}",
                    f"authorization: Bearer {_near(values)}",
                    f"sha256={hashlib.sha256(_bytes(8)).hexdigest()}",
                    f"conn=postgres{_pick(['', 'ql'])}://{_pick(WORDS[20:60])}:{_hex(10)}@db{_r(9)}.example.invalid:5432/shop",
                    f"user=admin ip=10.{_r(256)}.{_r(256)}.{_r(256)}",
                ]
            )
        )
    return "\n".join(out) + "\n"


def _code(values):
    out = []
    for _ in range(260):
        f, a, b = (_pick(WORDS[:110]) for _ in range(3))
        repl = _pick(["%20", "&amp;", "\\\\u003c", "\\\\x7f"])
        out.append(
            f"def {f}_{_hex(4)}({a}_1, {b}_2=None):\n"
            f'    """{_words(7).capitalize()}."""\n'
            f"    # {_words(9)}\n"
            f'    if {a}_1 is None and "{_pick(WORDS)}" not in os.environ:\n'
            f"        raise ValueError(f\"{_words(4)} {{{b}_2!r}}\\n\" '{_hex(8)}')\n"
            f'    return re.sub(r"[^\\w/+=&<>\\"\\\\]", "{repl}", str({a}_1))\n\n'
        )
    return "import os\nimport re\n\n\n" + "\n".join(out)


def _images(values):
    out, size = [], 0
    while size < 95_000:
        d = _image()
        out.append({"type": "image", "mimeType": "image/bmp", "data": d, "alt": _words(3)})
        size += len(d)
    return json.dumps({"content": out})


def _hashes(values):
    out = ["uuid,md5,sha1,sha256,b64,b64url,HEX"]
    for _ in range(270):
        b = _bytes(16)
        out.append(
            ",".join(
                [
                    _uuid(),
                    hashlib.md5(b).hexdigest(),
                    hashlib.sha1(b).hexdigest(),
                    hashlib.sha256(b).hexdigest(),
                    _b64(33),
                    _b64(40, True),
                    _hex(40).upper(),
                ]
            )
        )
    return "\r\n".join(out) + "\r\n"


def _prose(values):
    out = []
    for i in range(150):
        out.append(
            (f"## {_words(3).capitalize()}\n\n" if i % 8 == 0 else "")
            + ". ".join(_words(8 + _r(10)).capitalize() for _ in range(8))
            + ".\n"
        )
        if i % 10 == 3:
            out.append(f"```sh\ncurl -u {_pick(WORDS)}:{_hex(6)} '{_url()}'\n```\n")
        if i % 25 == 7:  # certificates are no keys
            b = _b64(48 * 6)
            out.append(
                "-----BEGIN CERTIFICATE-----\n"
                + "\n".join(b[j : j + 64] for j in range(0, len(b), 64))
                + "\n-----END CERTIFICATE-----\n"
            )
    return "\n".join(out)


def _urls(values):
    return "".join(_url() + "\n" for _ in range(1100))


KINDS = [
    (_json, "json"),
    (_log, "log"),
    (_code, "py"),
    (_images, "images.json"),
    (_ndjson, "ndjson"),
    (_hashes, "csv"),
    (_prose, "md"),
    (_urls, "txt"),
    (_json, "json"),
    (_log, "log"),
]


def pieces(size=10 * 1024 * 1024, seed=31) -> Iterator[tuple[str, str]]:
    """Yield (name, text) until `size` bytes of UTF-8 are reached."""
    global _rng
    _rng = random.Random(seed)
    values = list(secrets(reasonable_only=True).values())
    total = i = 0
    while total < size:
        make, ext = KINDS[i % len(KINDS)]
        text = make(values)
        yield f"{i:03d}.{ext}", text
        total += len(text.encode("utf-8", "surrogatepass"))
        i += 1
