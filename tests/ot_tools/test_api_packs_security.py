"""What programs, services and settings that mean harm can do to the packs that ask web APIs: nothing."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from api_documents import BRAVE, CONTEXT7, brave_error, page, python_document
from api_services import BRAVE_KEY, CONTEXT7_KEY, ApiApp, ApiServer, Served, answer, api_app, serving, settings_of

from ot.build import IN_WORKERS
from pace import PATIENCE

pytestmark = pytest.mark.anyio

WEB, SHELF = f"{BRAVE}/web/search", "/python/pypi/shelf/json"
SEARCH, LATEST = "brave.search(query='x', count=1)", "package.latest(name='shelf')"
NAME, NPM_NAME = "cannot be the name of a Python package", "cannot be the name of an npm package"
LIBRARY = "library must be like '/owner/name'"


@pytest.fixture(scope="module")
def elsewhere() -> Generator[ApiServer]:
    with serving(ApiServer()) as server:
        yield server


# ---------------------------------------------------------------- what programs say

ARGUMENTS: dict[str, tuple[str, str]] = {
    "a name that climbs": ("package.latest(name='../../secret')", NAME),
    "a name of two dots": ("package.latest(name='..')", NAME),
    "a name that climbs in disguise": ("package.latest(name='%2e%2e%2fsecret')", NAME),
    "a name with a question": ("package.latest(name='shelf?x=1')", NAME),
    "a name with a fragment": ("package.latest(name='shelf#x')", NAME),
    "a name with a header": (r"package.latest(name='shelf\r\nX-Evil: 1')", NAME),
    "a name that ends in a line feed": (r"package.latest(name='shelf\n')", NAME),
    "a name with a zero byte": (r"package.latest(name='shelf\x00')", "name must be text without NUL"),
    "a name that is an address": ("package.latest(name='http://169.254.169.254/latest')", NAME),
    "a name in letters that look alike": ("package.latest(name='sh\u0435lf')", NAME),
    "a name without end": ("package.latest(name='a' * 100000)", "more than 214"),
    "a name that is a number": ("package.latest(name=1)", "name"),
    "an npm name that climbs out of its scope": ("package.latest(name='@acme/../x', registry='npm')", NPM_NAME),
    "an npm name of a scope only": ("package.latest(name='@acme/', registry='npm')", NPM_NAME),
    "an npm name with two slashes": ("package.latest(name='a/b/c', registry='npm')", NPM_NAME),
    "an npm name of dots": ("package.latest(name='..', registry='npm')", NPM_NAME),
    "a registry that is an address": ("package.latest(name='x', registry='http://evil.example')", "registry"),
    "a version that climbs": ("package.info(name='shelf', version='../../x')", "version must be a version"),
    "a version with a header": (r"package.info(name='shelf', version='1.0\r\nX: 1')", "version must be a version"),
    "an npm version that climbs": ("package.info(name='left', registry='npm', version='1/../2')", "version must be"),
    "a library that climbs": ("context7.doc(library='/a/../../b/c/d', query='x')", LIBRARY),
    "a library with parameters": ("context7.doc(library='/a/b?type=txt&x=1', query='x')", LIBRARY),
    "a library on another host": ("context7.doc(library='//evil.example/x', query='x')", LIBRARY),
    "a library with a header": (r"context7.doc(library='/a/b\r\nX: 1', query='x')", LIBRARY),
    "a library's version with a slash": ("context7.doc(library='/a/b', version='../x', query='x')", "version must be"),
    "a country with a header": (r"brave.web_search(query='x', country='DE\r\nX: 1')", "country"),
    "an age with a parameter": ("brave.web_search(query='x', freshness='pd&count=99')", "freshness must be"),
    "an unpaired surrogate": (r"brave.search(query='\ud800')", "surrogate"),
    "too many questions": ("brave.search_batch(queries=['x'] * 51)", "queries must be a list of 1 to 50"),
    "too many requirements": ("package.compare(requirements=['a'] * 301)", "more than 300"),
    "requirements without end": ("package.compare(requirements='a\\n' * 300000)", "more than 500,000"),
    "a package.json nested without end": (
        "package.compare(requirements='[' * 200000, registry='npm')",
        "requirements is a text that is not JSON",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS.values(), ids=[*ARGUMENTS])
async def test_a_hostile_argument_is_refused_and_nothing_is_sent(app: ApiApp, server: ApiServer, case: tuple[str, str]):
    server.seen.clear()
    assert case[1] in await app.error(case[0])
    assert not server.seen


async def test_a_question_stays_one_parameter(app: ApiApp, server: ApiServer):
    server.seen.clear()
    hostile = "x&count=20#\r\nX-Evil: 1\r\n\r\nGET /other"
    await app.value(f"brave.search(query={hostile!r}, count=1)")
    (seen,) = server.seen
    assert (seen.path, seen.query["q"], seen.query["count"]) == (WEB, [hostile], ["1"])
    assert "x-evil" not in seen.headers


# ---------------------------------------------------------------- what services say

REDIRECTS: dict[str, tuple[str, str, str]] = {
    "a search sent to another port": (WEB, SEARCH, "http://127.0.0.1:{port}/steal"),
    "a search sent to another name": (WEB, SEARCH, "http://localhost:{port}/steal"),
    "a search sent on without a scheme": (WEB, SEARCH, "//127.0.0.1:{port}/steal"),
    "a library sent elsewhere": (
        f"{CONTEXT7}/libs/search",
        "context7.search(query='x')",
        "http://127.0.0.1:{port}/steal",
    ),
    "a package sent elsewhere": (SHELF, LATEST, "http://127.0.0.1:{port}/steal"),
    "a package sent to a file": (SHELF, LATEST, "file:///etc/passwd"),
    "a package sent on with a name and password": (SHELF, LATEST, "http://a:b@127.0.0.1:{own}/python/pypi/lamp/json"),
}


@pytest.mark.parametrize("case", REDIRECTS.values(), ids=[*REDIRECTS])
async def test_a_redirect_leads_to_no_other_place(
    app: ApiApp, server: ApiServer, elsewhere: ApiServer, case: tuple[str, str, str]
):
    path, program, target = case
    elsewhere.seen.clear()
    moved = answer({}, 307, location=target.format(port=elsewhere.port, own=server.port))
    with server.instead(path, moved) as seen:
        assert "redirects to another place, which is not followed" in await app.error(program)
    assert len(seen) == 1
    assert not elsewhere.seen


async def test_a_redirect_within_the_service_is_followed_but_not_for_ever(app: ApiApp, server: ApiServer):
    with server.instead(SHELF, answer({}, 301, location="/python/pypi/lamp/json")):
        assert (await app.value(LATEST))["name"] == "lamp"
    with server.instead(SHELF, answer({}, 301, location=SHELF)) as seen:
        assert "PyPI redirects without end" in await app.error(LATEST)
    assert len(seen) == 4


def packed(size: int) -> Served:
    return Served(200, gzip.compress(b" " * size), {"content-encoding": "gzip"})


NOT_JSON = "answered with something that is not JSON"
ANSWERS: dict[str, tuple[Served, str]] = {
    "more than anyone asked for": (Served(200, b" " * (9 << 20)), "answered with more than 8,388,608 bytes"),
    "little that unpacks to much": (packed(200 << 20), "answered with more than 8,388,608 bytes"),
    "half of what was packed": (
        Served(200, gzip.compress(b'{"web": {}}' + b" " * 999)[:-9], {"content-encoding": "gzip"}),
        "cannot be unpacked",
    ),
    "something that only looks packed": (Served(200, b"no", {"content-encoding": "gzip"}), "cannot be unpacked"),
    "an encoding that nobody asked for": (Served(200, b"no", {"content-encoding": "br"}), "that was not asked for"),
    "half of its JSON": (Served(200, b'{"web": {"results": ['), NOT_JSON),
    "JSON nested without end": (Served(200, b"[" * 200_000), NOT_JSON),
    "bytes that are not text": (Served(200, b"\xff\xfe\x00"), NOT_JSON),
    "a page": (Served(200, b"<html><title>Log in</title></html>", {"content-type": "text/html"}), NOT_JSON),
    "a number too long to read": (Served(200, b"1" * 10_000), NOT_JSON),
    "a status that means nothing": (answer({}, 418), "answered with status 418"),
    "a redirect to nowhere": (answer({}, 302), "answered with status 302, which names no new address"),
    "a wait of a year": (answer({}, 429, retry_after="31536000"), "ask again in 86,400 s"),
    "a wait without end": (answer({}, 429, retry_after="9" * 400), "ask again in 86,400 s"),
    "a wait until a day": (
        answer({}, 429, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
        "ask again in 86,400 s",
    ),
    "trouble for a year": (answer({}, 503, retry_after="31536000"), "answered with status 503"),
    "the key in a refusal": (brave_error(401, "X", f"bad token {BRAVE_KEY}"), "refused the key: bad token [key]."),
    "the key in another error": (brave_error(422, "X", f"{BRAVE_KEY}!"), "refused the question: [key]!"),
    "the key where an error is cut": (brave_error(422, "X", "x" * 290 + BRAVE_KEY), "x" * 290 + "[key]"),
    "what a terminal would obey": (brave_error(422, "X", "a\x1b]0;owned\x07b"), "refused the question: a ]0;owned b"),
    "an error without end": (brave_error(422, "X", "x" * 100_000), "refused the question: " + "x" * 300),
}


@pytest.mark.parametrize("case", ANSWERS.values(), ids=[*ANSWERS])
async def test_a_service_that_answers_with_harm_is_one_short_error(
    app: ApiApp, server: ApiServer, case: tuple[Served, str]
):
    with server.instead(WEB, case[0]):
        error = await app.error(SEARCH)
    assert case[1] in error
    assert BRAVE_KEY[:9] not in error
    assert len(error) < 800


@pytest.mark.parametrize(
    ("served", "said"),
    [
        pytest.param(answer({}, 503), "Brave Search answered with status 503", id="in trouble"),
        pytest.param(Served(200, b"{}", {"content-length": "9"}), "Brave Search cannot be reached", id="hanging up"),
    ],
)
async def test_a_service_that_does_not_recover_is_asked_three_times(
    app: ApiApp, server: ApiServer, served: Served, said: str
):
    with server.instead(WEB, served) as seen:
        assert said in await app.error(SEARCH)
    assert len(seen) == 3


SHAPES: dict[str, Any] = {
    "a list for an object": [],
    "a text for an object": "web",
    "nothing": None,
    "a number for the hits": {"web": {"results": 7}},
    "hits of every other kind": {"web": {"results": [1, None, "x", [[]]]}},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=[*SHAPES])
async def test_an_answer_of_another_shape_has_no_hits(app: ApiApp, server: ApiServer, shape: Any):
    with server.instead(WEB, answer(shape)):
        assert await app.value(SEARCH) == []


async def test_values_of_another_kind_are_left_out(app: ApiApp, server: ApiServer):
    image = b'{"results": [{"title": 7, "url": [], "properties": {"width": 1e999, "height": %s}}]}' % (b"1" * 400)
    with server.instead(f"{BRAVE}/images/search", Served(200, image)):
        (found,) = await app.value("brave.image_search(query='x')")
    assert (found["title"], found["page"], found["width"], found["height"]) == ("", "", 0, 0)


async def test_an_answer_in_two_archives_is_read_whole(app: ApiApp, server: ApiServer):
    start, end = json.dumps({"web": {"results": [page("x", 0)]}}).encode().split(b",", 1)
    packed = gzip.compress(start + b",") + gzip.compress(end)
    with server.instead(WEB, Served(200, packed, {"content-encoding": "gzip"})):
        assert len(await app.value(SEARCH)) == 1


async def test_a_hit_that_holds_the_key_comes_without_it(app: ApiApp, server: ApiServer):
    with server.instead(WEB, answer({"web": {"results": [page(BRAVE_KEY, 0)]}})):
        (hit,) = await app.value(SEARCH)
    assert BRAVE_KEY not in json.dumps(hit)


async def test_a_key_goes_to_its_own_service_only(app: ApiApp, server: ApiServer):
    server.seen.clear()
    await app.value(f"[{SEARCH}, context7.search(query='x'), package.changelog(name='shelf')]")
    for seen in server.seen:
        assert (BRAVE_KEY in str(seen)) == seen.path.startswith(BRAVE)
        assert (CONTEXT7_KEY in str(seen)) == seen.path.startswith(CONTEXT7)


# ---------------------------------------------------------------- what the environment says


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The developer's own proxy has no part in this."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def test_a_proxy_is_asked_for_services_elsewhere_and_gets_no_key_for_one_on_this_machine(
    server: ApiServer, tmp_path: Path, no_proxy: pytest.MonkeyPatch
):
    settings = settings_of(server)
    settings["package"]["pypi_url"] = "http://only-the-proxy.invalid"
    with serving(ApiServer()) as proxy:
        no_proxy.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        proxy.routes["/pypi/shelf/json"] = answer(python_document("shelf", {"1.0.0": "2025-01-01"}, "1.0.0"))
        async with api_app(tmp_path / "app", settings) as app:
            assert len(await app.value(SEARCH)) == 1
            assert not proxy.seen
            assert (await app.value(LATEST))["version"] == "1.0.0"


ENVIRONMENT: dict[str, tuple[str, str, str]] = {
    "a proxy whose password is not quoted": ("HTTP_PROXY", "http://me:secret/word@proxy:80", "must be like http://"),
    "a proxy of another kind": ("HTTP_PROXY", "socks5://me:secret@proxy:80", "must be like http://host:port"),
    "a file of certificates that is not there": (
        "SSL_CERT_FILE",
        "/no/file",
        "'/no/file', which the environment names",
    ),
}


@pytest.mark.parametrize("case", ENVIRONMENT.values(), ids=[*ENVIRONMENT])
async def test_an_environment_that_cannot_be_used_is_said_to_be_the_reason(
    tmp_path: Path, no_proxy: pytest.MonkeyPatch, case: tuple[str, str, str]
):
    no_proxy.setenv(*case[:2])
    async with api_app(tmp_path / "app", {"package": {"pypi_url": "http://only-the-proxy.invalid"}}) as app:
        error = await app.error(LATEST)
    assert error.startswith("OSError: ") and case[2] in error
    assert "secret" not in error


# ---------------------------------------------------------------- what packages say of themselves

ADDRESSES: dict[str, str] = {
    "a host that only begins like GitHub": "https://github.com.evil.example/acme/shelf",
    "a host that only ends like GitHub": "https://evilgithub.com/acme/shelf",
    "a name and password before another host": "https://github.com@evil.example/acme/shelf",
    "an owner that climbs": "https://github.com/../../acme/shelf",
    "a repository that climbs": "https://github.com/acme/..",
    "a program": "javascript:alert(1)//github.com/acme/shelf",
    "an address without end": "https://github.com/acme/" + "a" * 100_000,
}


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=[*ADDRESSES])
async def test_a_package_cannot_choose_what_is_asked(app: ApiApp, server: ApiServer, address: str):
    document = python_document("shelf", {"1.0.0": "2025-01-01"}, "1.0.0")
    document["info"]["project_urls"] = {"Source": address}
    with server.instead(SHELF, answer(document)) as seen:
        found = await app.value("package.changelog(name='shelf')")
    assert "names no repository on GitHub" in found["note"]
    assert [request.path for request in seen] == [SHELF]


@pytest.mark.parametrize(
    "path", ["../../../user", "docs/../../x.md", "%2e%2e/x.md"], ids=["up", "down and up", "disguised"]
)
async def test_a_changelog_that_climbs_out_of_its_repository_is_not_asked_for(
    app: ApiApp, server: ApiServer, path: str
):
    document = python_document("shelf", {"1.0.0": "2025-01-01"}, "1.0.0")
    document["info"]["project_urls"] = {"Changelog": f"https://github.com/acme/lamp/blob/main/{path}"}
    with server.instead(SHELF, answer(document)) as seen:
        found = await app.value("package.changelog(name='shelf')")
    assert found["changes"][0]["text"] == ""
    assert all(request.path.startswith((SHELF, "/github/repos/acme/lamp/")) for request in seen)
    assert not any(".." in request.path or "%2e" in request.path.lower() for request in seen)


async def test_versions_that_are_none_are_left_out(app: ApiApp, server: ApiServer):
    hostile = {"1.0.0": "2025-01-01", "9" * 9000: "2025-01-01", "../../x": "2025-01-01", "": "2025-01-01"}
    with server.instead(SHELF, answer(python_document("shelf", hostile, "1.0.0"))):
        assert [row["version"] for row in await app.value("package.versions(name='shelf')")] == ["1.0.0"]


# ---------------------------------------------------------------- what settings and secrets say


@pytest.fixture(scope="module")
def client() -> ModuleType:
    file = IN_WORKERS / "_shared/service_client.py"
    spec = importlib.util.spec_from_file_location("service_client", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(file.parent))
        patch.setitem(__import__("sys").modules, "service_client", module)
        spec.loader.exec_module(module)
    return module


URLS: dict[str, str] = {
    "another host": "https://evil.example/res/v1",
    "a host below another": "https://api.search.brave.com.evil.example/res/v1",
    "the key in the clear": "http://api.search.brave.com/res/v1",
    "a name and password": "https://api.search.brave.com@evil.example/res/v1",
    "a name and password for its own host": "https://me:word@api.search.brave.com/res/v1",
    "parameters": "https://api.search.brave.com/res/v1?x=",
    "a header": "https://api.search.brave.com/res/v1\r\nX: 1",
    "a file": "file:///etc/passwd",
    "no address": "https://[bad",
}


@pytest.mark.parametrize("url", URLS.values(), ids=[*URLS])
def test_an_address_that_would_take_the_key_elsewhere_is_refused(client: ModuleType, url: str):
    with pytest.raises(ValueError, match=r"^url (must|is not)"):
        client.check_url("url", url, ["api.search.brave.com"])


@pytest.mark.parametrize("key", ["", " ", "two words", "line\r\nX-Evil: 1", "clé", "nul\x00"], ids=repr)
def test_a_key_that_is_none_is_refused_without_being_shown(client: ModuleType, key: str):
    with pytest.raises(PermissionError) as refused:
        client.check_key("BRAVE_API_KEY", key)
    assert str(refused.value).startswith("the secret BRAVE_API_KEY is empty, or holds characters that no key has")
    assert "Evil" not in str(refused.value)


async def test_a_setting_cannot_send_the_key_elsewhere(tmp_path: Path):
    async with api_app(tmp_path / "app", {"brave": {"url": "https://evil.example/res/v1"}}) as app:
        error = await app.error(SEARCH)
    assert "must be on https://api.search.brave.com, the only place that the key is sent to" in error
    assert BRAVE_KEY not in error


# ---------------------------------------------------------------- many questions in the time of one call


async def test_what_has_come_when_the_time_is_over_is_kept(client: ModuleType):
    async def ask(api: Any, question: str) -> str:
        if question == "slow":
            await asyncio.wait_for(asyncio.Event().wait(), PATIENCE)
        if question == "wrong":
            raise ValueError(question)
        return question

    service = client.WebService("A service", "brave", "http://127.0.0.1:1", 0.01, 1000)
    quick, wrong, slow = await client.ask_each(service, ["quick", "wrong", "slow"], ask, 3)
    assert (quick, str(wrong)) == ("quick", "wrong")
    assert str(slow) == "A service did not answer within 0.01 s (tools.brave.timeout)"
    with pytest.raises(TimeoutError, match="A service did not answer"):
        await client.ask_each(service, ["slow", "wrong"], ask, 2)
    with pytest.raises(ValueError, match="wrong"):
        await client.ask_each(service, ["wrong", "slow"], ask, 2)
    assert await client.ask_each(service, [], ask, 2) == []
