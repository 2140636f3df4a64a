"""Tokens that must not be accepted, as data: each differs from a good one in one respect."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from joserfc import jwe, jws, jwt
from joserfc.jwk import ECKey, RSAKey

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.signing_keys import SigningKeys, rsa_key
from onetool_team.settings import AccessTokens, Http

OURS = "https://tools.example.com/mcp"
LEEWAY = 60


def accepting(issuer: LoopbackAuthorizationServer) -> Http:
    """Return settings that accept the tokens of *issuer*."""
    return Http(public_url=OURS.removesuffix("/mcp"), oauth=AccessTokens(issuer=issuer.origin))


class Forge:
    """Makes tokens of one authorization server: with its keys, and with others."""

    def __init__(self, issuer: str, keys: SigningKeys) -> None:
        """Sign with *keys* as *issuer*."""
        self.issuer = issuer
        self.keys = keys

    def claims(self, **other: Any) -> dict[str, Any]:
        """Return the claims of a good token, with *other* in them; None leaves a claim out."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": OURS, "sub": "ann", "exp": now + 600, "iat": now, "scope": "run"}
        return {name: value for name, value in {**usual, **other}.items() if value is not None}

    def token(self, header: Mapping[str, Any] | None = None, **other: Any) -> str:
        """Return a token that is signed as it should be."""
        return self.keys.sign(self.claims(**other), header)

    def by(self, key: Any, header: Mapping[str, Any], claims: Mapping[str, Any] | None = None) -> str:
        """Return a token that somebody else signed with *key*."""
        registry = jws.JWSRegistry(algorithms=[header["alg"]], strict_check_header=False)
        return jwt.encode(dict(header), dict(claims or self.claims()), key, registry=registry)

    def raw(self, header: str, payload: str) -> str:
        """Return a token whose texts were signed as they are, by the right key."""
        signed = f"{_b64(header.encode())}.{_b64(payload.encode())}"
        key = self.keys.keys[0]
        return f"{signed}.{_b64(jws.JWSRegistry.algorithms['RS256'].sign(signed.encode(), key))}"


def forge_of(issuer: LoopbackAuthorizationServer) -> Forge:
    """Return what makes tokens of *issuer*."""
    assert issuer.issuing.signing
    return Forge(issuer.origin, issuer.issuing.signing)


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _now(seconds: float) -> int:
    return int(time.time() + seconds)


def _none(forge: Forge, name: str = "none") -> str:
    head, body = json.dumps({"alg": name, "kid": "first"}), json.dumps(forge.claims())
    return f"{_b64(head.encode())}.{_b64(body.encode())}."


def _hmac(forge: Forge, secret: bytes) -> str:
    head, body = json.dumps({"alg": "HS256", "kid": "first"}), json.dumps(forge.claims())
    signed = f"{_b64(head.encode())}.{_b64(body.encode())}"
    return f"{signed}.{_b64(hmac.digest(secret, signed.encode(), 'sha256'))}"


def _other_key(forge: Forge, **header: Any) -> str:
    return forge.by(rsa_key("thief"), {"alg": "RS256", "kid": "first", **header})


def _embedded(forge: Forge) -> str:
    key = ECKey.generate_key("P-256")
    return forge.by(key, {"alg": "ES256", "jwk": key.as_dict(private=False)})


def _encrypted(forge: Forge) -> str:
    public = RSAKey.import_key({**forge.keys.keys[0].as_dict(private=False), "use": "enc"})
    return jwe.encrypt_compact({"alg": "RSA-OAEP", "enc": "A128GCM"}, forge.token(), public)


def _twice(forge: Forge, more: str) -> str:
    return forge.raw(json.dumps({"alg": "RS256", "kid": "first"}), json.dumps(forge.claims())[:-1] + f", {more}}}")


def _swapped(forge: Forge) -> str:
    head, _, signature = forge.token().split(".")
    return f"{head}.{_b64(json.dumps(forge.claims(sub='root')).encode())}.{signature}"


def _flipped(token: str) -> str:
    return token[:-2] + ("A" if token[-2] != "A" else "B") + token[-1]


def _pem(forge: Forge) -> bytes:
    return forge.keys.keys[0].as_pem(private=False)


ATTACKS: dict[str, Callable[[Forge], str]] = {
    "no audience": lambda forge: forge.token(aud=None),
    "another audience": lambda forge: forge.token(aud="https://other.example.com/mcp"),
    "our audience and a letter": lambda forge: forge.token(aud=OURS + "s"),
    "our audience with a slash": lambda forge: forge.token(aud=OURS + "/"),
    "the beginning of our audience": lambda forge: forge.token(aud="https://tools.example.com"),
    "our audience in capitals": lambda forge: forge.token(aud=OURS.upper()),
    "our audience with a look-alike": lambda forge: forge.token(aud=OURS.replace("o", "\N{CYRILLIC SMALL LETTER O}")),
    "an empty list of audiences": lambda forge: forge.token(aud=[]),
    "our audience within a text": lambda forge: forge.token(aud=f"https://other.example.com {OURS}"),
    "our audience in a list in a list": lambda forge: forge.token(aud=[[OURS]]),
    "our audience beside a number": lambda forge: forge.token(aud=[OURS, 1]),
    "our audience as a key": lambda forge: forge.token(aud={OURS: True}),
    "no issuer": lambda forge: forge.token(iss=None),
    "another issuer": lambda forge: forge.token(iss="https://evil.example.com"),
    "the issuer with a slash": lambda forge: forge.token(iss=forge.issuer + "/"),
    "another tenant of the issuer": lambda forge: forge.token(iss=forge.issuer + "/other"),
    "the issuer in a list": lambda forge: forge.token(iss=[forge.issuer]),
    "no expiry": lambda forge: forge.token(exp=None),
    "expired beyond the leeway": lambda forge: forge.token(exp=_now(-LEEWAY - 5)),
    "an expiry in words": lambda forge: forge.token(exp=str(_now(600))),
    "an expiry that is true": lambda forge: forge.token(exp=True),
    "an expiry that is not a number": lambda forge: forge.raw(
        '{"alg": "RS256", "kid": "first"}', json.dumps(forge.claims(exp=float("nan")))
    ),
    "not valid yet": lambda forge: forge.token(nbf=_now(LEEWAY + 30)),
    "issued in the future": lambda forge: forge.token(iat=_now(LEEWAY + 30)),
    "no subject": lambda forge: forge.token(sub=None),
    "an empty subject": lambda forge: forge.token(sub=""),
    "a subject of spaces": lambda forge: forge.token(sub="  "),
    "a number as the subject": lambda forge: forge.token(sub=1000),
    "a subject with a line break": lambda forge: forge.token(sub="ann\nroot"),
    "a subject of 10,000 letters": lambda forge: forge.token(sub="a" * 10_000),
    "no scope": lambda forge: forge.token(scope=None),
    "another scope": lambda forge: forge.token(scope="read write"),
    "a scope in capitals": lambda forge: forge.token(scope="RUN"),
    "a scope that begins like ours": lambda forge: forge.token(scope="runner administrator"),
    "scope as a list": lambda forge: forge.token(scope=["run", "admin"]),
    "scope as a list beside scp": lambda forge: forge.token(scope=["admin"], scp="run"),
    "groups as a text": lambda forge: forge.token(groups="admins"),
    "groups that are no names": lambda forge: forge.token(groups=[["admins"]]),
    "a thousand groups": lambda forge: forge.token(groups=[f"group{number}" for number in range(1000)]),
    "bound to a key": lambda forge: forge.token(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
    "alg none": _none,
    "alg None": lambda forge: _none(forge, "None"),
    "alg empty": lambda forge: _none(forge, ""),
    "alg none with the signature of another": lambda forge: _none(forge) + forge.token().split(".")[2],
    "HS256 with the public key as PEM": lambda forge: _hmac(forge, _pem(forge)),
    "HS256 with the public key as JWK": lambda forge: _hmac(forge, json.dumps(forge.keys.published()).encode()),
    "HS256 with no secret": lambda forge: _hmac(forge, b""),
    "another key under a known name": _other_key,
    "another key without a name": lambda forge: forge.by(rsa_key("thief"), {"alg": "RS256"}),
    "a key that nobody has": lambda forge: _other_key(forge, kid="forged"),
    "a key that is a path": lambda forge: _other_key(forge, kid="../../../../dev/null"),
    "a key that is a query": lambda forge: _other_key(forge, kid="first' OR '1'='1"),
    "a key that is a number": lambda forge: forge.raw('{"alg": "RS256", "kid": 1}', json.dumps(forge.claims())),
    "keys at an address in the header": lambda forge: _other_key(
        forge, kid="thief", jku="https://evil.example.com/jwks"
    ),
    "keys of a certificate in the header": lambda forge: _other_key(forge, x5u="https://evil.example.com/x5u"),
    "a key in the header": _embedded,
    "a key in the header under a known name": lambda forge: _other_key(
        forge, jwk=rsa_key("thief").as_dict(private=False)
    ),
    "a curve for a key of RSA": lambda forge: forge.by(ECKey.generate_key("P-256"), {"alg": "ES256", "kid": "first"}),
    "an extension that must be understood": lambda forge: forge.raw(
        '{"alg": "RS256", "kid": "first", "crit": ["exp"], "exp": 1}', json.dumps(forge.claims())
    ),
    "a usual parameter that must be understood": lambda forge: forge.raw(
        '{"alg": "RS256", "kid": "first", "crit": ["kid"]}', json.dumps(forge.claims())
    ),
    "a payload that is not encoded": lambda forge: forge.raw(
        '{"alg": "RS256", "kid": "first", "crit": ["b64"], "b64": false}', json.dumps(forge.claims())
    ),
    "an identity token's kin": lambda forge: forge.token({"typ": "logout+jwt"}),
    "a proof of possession": lambda forge: forge.token({"typ": "dpop+jwt"}),
    "a token within a token": lambda forge: forge.raw(
        '{"alg": "RS256", "kid": "first", "cty": "JWT"}', json.dumps(forge.token())
    ),
    "encrypted for us": _encrypted,
    "a claim twice": lambda forge: _twice(forge, '"sub": "root"'),
    "the audience twice": lambda forge: _twice(forge, f'"aud": "{OURS}"'),
    "claims of another": _swapped,
    "a changed signature": lambda forge: _flipped(forge.token()),
    "no signature": lambda forge: forge.token().rpartition(".")[0] + ".",
    "truncated": lambda forge: forge.token()[:-20],
    "only its beginning": lambda forge: forge.token()[:40],
    "with a fourth part": lambda forge: forge.token() + ".AAAA",
    "with padding": lambda forge: forge.token() + "==",
    "with a space": lambda forge: forge.token().replace(".", ". ", 1),
    "with a line break": lambda forge: forge.token() + "\n",
    "of 20,000 letters": lambda forge: forge.token(pad="x" * 20_000),
    "of one megabyte": lambda forge: forge.token(pad="x" * (1 << 20)),
    "a header of lists in lists": lambda forge: f"{_b64(b'[' * 5000)}.{_b64(b'{}')}.AAAA",
    "a header that is a text": lambda forge: f"{_b64(json.dumps('alg').encode())}.{_b64(b'{}')}.AAAA",
    "claims that are a list": lambda forge: forge.raw('{"alg": "RS256", "kid": "first"}', "[]"),
    "claims of lists in lists": lambda forge: forge.raw('{"alg": "RS256", "kid": "first"}', "[" * 9000),
    "a URL with a token in its query": lambda forge: f"https://tools.example.com/mcp?access_token={forge.token()}",
    "the word and the token": lambda forge: f"Bearer {forge.token()}",
    "two tokens": lambda forge: f"{forge.token()},{forge.token()}",
    "an empty text": lambda forge: "",
    "dots": lambda forge: "..",
}
"""By what is wrong: each makes a token that must be refused."""
