"""The packs ``package`` and ``context7`` in their workers, before services that answer as the real ones do."""

from __future__ import annotations

import ast
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from api_documents import CONTEXT7, python_document
from api_services import CONTEXT7_KEY, ApiApp, ApiServer, answer, api_app, settings_of

from ot.build import IN_WORKERS

pytestmark = pytest.mark.anyio


def example_calls() -> list[str]:
    found: list[str] = []
    for name in ("brave", "context7", "package"):
        tree = ast.parse((IN_WORKERS / name / f"{name}_tools.py").read_text())
        tools = [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name[0] != "_"]
        found += [(ast.get_docstring(tool) or "").partition("Example:\n")[2].strip() for tool in tools]
    return found


@pytest.mark.parametrize("call", example_calls(), ids=lambda call: call.partition("(")[0])
async def test_the_example_of_each_tool_runs(app: ApiApp, call: str):
    assert await app.value(call)


async def test_the_latest_version_is_one_meant_for_everyone(app: ApiApp):
    latest = {"name": "shelf", "version": "2.0.0", "date": "2026-05-01", "registry": "pypi"}
    assert await app.value("package.latest(name='Shelf')") == latest
    assert (await app.value("package.latest(name='lamp')"))["version"] == "0.2.1"
    assert (await app.value("package.latest(name='left', registry='npm')"))["version"] == "1.3.0"


async def test_versions_are_ordered_as_versions_and_say_which_were_taken_back(app: ApiApp):
    found = await app.value("package.versions(name='shelf')")
    assert [row["version"] for row in found] == ["2.0.0", "1.2.0", "1.1.0", "1.0.0"]
    assert [row["version"] for row in found if row["withdrawn"]] == ["1.1.0"]
    every = await app.value("package.versions(name='lamp', prereleases=True, limit=2)")
    assert [(row["version"], row["prerelease"]) for row in every] == [("0.3rc1", True), ("0.2.1", False)]
    npm = await app.value("package.versions(name='@acme/right', registry='npm')")
    assert npm[0] == {"version": "3.1.4", "date": "2026-03-14", "prerelease": False, "withdrawn": False}


async def test_info_tells_of_the_version_that_was_asked_for(app: ApiApp):
    old = await app.value("package.info(name='shelf', version='1.0.0')")
    assert (old["version"], old["date"], old["license"]) == ("1.0.0", "2025-01-01", "MIT")
    assert old["vulnerabilities"] == [{"id": "PYSEC-2026-1", "summary": "Leaks.", "fixed_in": ["1.2.0"]}]
    assert (old["repository"], old["dependencies"]) == ("https://github.com/acme/shelf", ["rich>=13"])
    new = await app.value("package.info(name='shelf')")
    assert (new["version"], new["vulnerabilities"]) == ("2.0.0", [])
    npm = await app.value("package.info(name='left', registry='npm', version='1.0.0')")
    assert (npm["date"], npm["dependencies"]) == ("2025-01-01", ["left@^1.0.0"])


FORMS: dict[str, Any] = {
    "a list": ["shelf>=1.0,<2", "lamp"],
    "a dict": {"shelf": ">=1.0,<2", "lamp": "*"},
    "a dict with a version": {"shelf": "<2,>=1.0", "lamp": "0.2.1"},
    "requirements.txt": "-r base.txt\nshelf >=1.0,<2 \\\n  --hash=sha256:0 # why\n# lamp\nlamp\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["shelf>=1.0,<2"]\n[dependency-groups]\ndev = ["lamp"]\n',
}


@pytest.mark.parametrize("form", FORMS.values(), ids=[*FORMS])
async def test_python_requirements_of_each_form_are_compared(app: ApiApp, form: Any):
    shelf, lamp = await app.value(f"package.compare(requirements={form!r})")
    assert shelf == {
        "name": "shelf",
        "required": "<2,>=1.0",
        "allowed": "1.2.0",
        "latest": "2.0.0",
        "latest_date": "2026-05-01",
        "behind": "major",
        "error": "",
    }
    assert (lamp["allowed"], lamp["latest"], lamp["behind"]) == ("0.2.1", "0.2.1", "")


NPM_FORMS: dict[str, Any] = {
    "a list": ["left@~1.0.0", "@acme/right@^1.0.0", "@acme/right"],
    "package.json": '{"dependencies": {"left": "~1.0.0", "@acme/right": "^1.0.0"}, '
    '"devDependencies": {"@acme/right": ""}}',
}


@pytest.mark.parametrize("form", NPM_FORMS.values(), ids=[*NPM_FORMS])
async def test_npm_requirements_of_each_form_are_compared(app: ApiApp, form: Any):
    rows = await app.value(f"package.compare(requirements={form!r}, registry='npm')")
    assert [(row["allowed"], row["latest"], row["behind"]) for row in rows] == [
        ("1.0.0", "1.3.0", "minor"),
        ("1.0.0", "3.1.4", "major"),
        ("3.1.4", "3.1.4", ""),
    ]


async def test_a_package_of_which_the_registry_fails_says_why_beside_the_rest(app: ApiApp, server: ApiServer):
    program = "package.compare(requirements=['shelf', 'lamp'])"
    with server.instead("/python/pypi/lamp/json", answer({}, 418)):
        shelf, lamp = await app.value(program)
        assert (shelf["latest"], lamp["error"]) == ("2.0.0", "PyPI answered with status 418")
        with server.instead("/python/pypi/shelf/json", answer({}, 418)):
            assert "RuntimeError: PyPI answered with status 418" in await app.error(program)


async def test_a_version_without_files_is_not_the_latest_and_none_at_all_is_an_error(app: ApiApp, server: ApiServer):
    document = python_document("shelf", {"1.0.0": "2025-01-01", "2.0.0": "2025-01-02"}, "2.0.0")
    document["releases"]["2.0.0"] = []
    with server.instead("/python/pypi/shelf/json", answer(document)):
        assert (await app.value("package.latest(name='shelf')"))["version"] == "1.0.0"
    with server.instead("/python/pypi/shelf/json", answer({"info": {}})):
        assert "PyPI names no version of 'shelf'" in await app.error("package.latest(name='shelf')")


async def test_what_cannot_be_compared_says_why_beside_the_rest(app: ApiApp):
    given = ["shelf==1.1.0", "nothing", "a b c", "x @ https://x.example/x.whl", "shelf>=9"]
    rows = await app.value(f"package.compare(requirements={given!r})")
    assert (rows[0]["allowed"], rows[0]["behind"]) == ("1.1.0", "major")
    assert [row["error"] for row in rows] == [
        "",
        "PyPI has no package 'nothing'",
        "this is not a requirement such as 'name>=1.2,<2'",
        "it comes from an address of its own, not from the registry",
        "no version fits '>=9'",
    ]
    (row,) = await app.value("package.compare(requirements={'left': 'workspace:*'}, registry='npm')")
    assert row["error"] == "'workspace:*' is not a range of versions"


async def test_changes_come_from_the_releases_on_github(app: ApiApp):
    found = await app.value("package.changelog(name='shelf', since='1.0.0')")
    changes = [(row["version"], row["date"], row["text"]) for row in found["changes"]]
    assert changes == [
        ("2.0.0", "2026-05-01", "Broke `get`."),
        ("1.2.0", "2026-01-01", "Added `put`."),
        ("1.1.0", "2025-06-01", ""),
    ]
    assert (found["source"], found["note"]) == ("releases", "nothing was found about 1 of these versions")


async def test_what_is_left_out_of_a_changelog_is_told(app: ApiApp, server: ApiServer):
    releases = answer([{"tag_name": "v2.0.0", "name": "2.0.0", "body": "x" * 9000, "html_url": ""}])
    with server.instead("/github/repos/acme/shelf/releases", releases):
        found = await app.value("package.changelog(name='shelf', since='1.0.0', limit=1)")
    assert found["note"] == "2 older versions are left out: raise limit"
    assert found["changes"][0]["text"] == "x" * 8000 + "\n[1,000 more characters]"


async def test_changes_come_from_the_changelog_where_there_are_no_releases(app: ApiApp):
    found = await app.value("package.changelog(name='lamp', since='0.1')")
    assert [(row["version"], row["text"]) for row in found["changes"]] == [
        ("0.2.1", "- Brighter.\n\n### Fixed\n\n- Off means off."),
        ("0.2", "Dimmer."),
    ]
    assert found["url"] == "https://github.com/acme/lamp/blob/HEAD/CHANGELOG.md"


async def test_changes_come_from_the_file_that_the_package_names(app: ApiApp):
    found = await app.value("package.changelog(name='desk', since='1.0', until='1.1')")
    assert [(row["version"], row["text"]) for row in found["changes"]] == [("1.1", "A drawer.")]
    assert found["source"] == "file"


async def test_changes_that_cannot_be_read_are_versions_with_a_note(app: ApiApp, server: ApiServer):
    found = await app.value("package.changelog(name='lone')")
    assert [row["version"] for row in found["changes"]] == ["3.0"]
    assert "its changelog may be at https://lone.example/changes: web.fetch reads it" in found["note"]
    limited = answer(
        {"message": "API rate limit exceeded"}, 403, x_ratelimit_remaining="0", x_ratelimit_reset="4102444800"
    )
    with server.instead("/github/repos/acme/shelf/releases", limited):
        found = await app.value("package.changelog(name='shelf', since='1.2.0')")
    assert [row["version"] for row in found["changes"]] == ["2.0.0"]
    assert found["note"].startswith("the notes could not be read: the rate limit of GitHub is used up: ask again in ")


async def test_an_unknown_package_is_a_lookup_error(app: ApiApp):
    assert "LookupError: PyPI has no package 'nothing'" in await app.error("package.latest(name='nothing')")
    assert "LookupError: the npm registry has no package 'nothing'" in await app.error(
        "package.versions(name='nothing', registry='npm')"
    )


async def test_a_missing_network_is_one_error_that_says_so(server: ApiServer, tmp_path: Path):
    nowhere = {"package": {**settings_of(server)["package"], "pypi_url": "http://127.0.0.1:1"}}
    async with api_app(tmp_path / "app", nowhere) as app:
        error = await app.error("package.latest(name='shelf')")
    assert "PyPI cannot be reached at 127.0.0.1:1 (no connection)" in error


FIRST = {
    "title": "Put a thing",
    "text": "Puts it on the shelf.",
    "code": "shelf.put(1)",
    "language": "python",
    "source": "https://github.com/acme/shelf/blob/main/README.md",
}


async def test_a_search_returns_libraries_and_sends_the_key(app: ApiApp, server: ApiServer):
    server.seen.clear()
    assert await app.value("context7.search(query='shelf', question='put things')") == [
        {
            "id": "/acme/shelf",
            "title": "Shelf",
            "description": "Keeps things",
            "versions": ["v1.2.0", "v2.0.0"],
            "snippets": 42,
            "trust": 9.5,
            "score": 88,
            "updated": "2026-02-03",
        }
    ]
    (seen,) = server.seen
    assert seen.query == {"libraryName": ["shelf"], "query": ["put things"]}
    assert seen.headers["authorization"] == f"Bearer {CONTEXT7_KEY}"


async def test_a_bare_list_of_libraries_is_read_too(app: ApiApp, server: ApiServer):
    with server.instead(f"{CONTEXT7}/libs/search", answer([{"id": "/a/b", "name": "B"}])):
        (library,) = await app.value("context7.search(query='b')")
    assert (library["title"], library["trust"], library["versions"]) == ("B", None, [])


async def test_documentation_comes_as_snippets_of_code_and_prose(app: ApiApp):
    found = await app.value("context7.doc(library='/acme/shelf', query='put')")
    first, second, prose = found["snippets"]
    assert found["library"] == "/acme/shelf"
    assert first == FIRST
    assert second["language"] == "sh"
    assert (prose["title"], prose["text"], prose["code"]) == ("Guide > Putting", "Things stay.", "")


async def test_a_name_is_looked_up_and_a_version_appended(app: ApiApp, server: ApiServer):
    server.seen.clear()
    found = await app.value("context7.doc(library='shelf', query='put', version='v1.2.0', limit=1)")
    assert (found["library"], len(found["snippets"])) == ("/acme/shelf/v1.2.0", 1)
    assert [seen.path.rpartition("/")[2] for seen in server.seen] == ["search", "context"]


async def test_a_library_that_has_moved_is_asked_where_it_is_now(app: ApiApp):
    assert (await app.value("context7.doc(library='/acme/rack', query='put')"))["library"] == "/acme/shelf"


async def test_a_library_that_is_not_there_yet_says_so(app: ApiApp):
    assert "is still reading the documentation of '/acme/new'" in await app.error(
        "context7.doc(library='/acme/new', query='x')"
    )


async def test_an_unknown_library_is_a_lookup_error(app: ApiApp, server: ApiServer):
    error = await app.error("context7.doc(library='/no/where', query='x')")
    assert 'LookupError: Context7 has no such thing: Library "/no/where" not found.' in error
    with server.instead(f"{CONTEXT7}/libs/search", answer({"results": []})):
        error = await app.error("context7.doc(library='nowhere', query='x')")
    assert "LookupError: Context7 has no library 'nowhere': try other words with context7.search" in error


async def test_a_limit_is_waited_for_as_long_as_the_service_says(app: ApiApp, server: ApiServer):
    numbers = count()
    limited, fine = answer({"error": "too_many"}, 429, retry_after="0.2"), answer({"results": []})
    with server.instead(f"{CONTEXT7}/libs/search", lambda _: fine if next(numbers) else limited) as seen:
        assert await app.value("context7.search(query='b')") == []
    assert len(seen) == 2


async def test_without_a_key_it_asks_without_one(server: ApiServer, tmp_path: Path):
    async with api_app(tmp_path / "app", settings_of(server), secrets={}) as app:
        server.seen.clear()
        assert await app.value("context7.search(query='shelf')")
    assert "authorization" not in server.seen[0].headers
