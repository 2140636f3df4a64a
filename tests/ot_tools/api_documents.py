"""What the services say in these tests, in the forms that they document."""

from __future__ import annotations

import json
from typing import Any

from api_services import ApiServer, Seen, Served, answer

BRAVE, CONTEXT7 = "/brave/res/v1", "/context7/api/v2"
PLACES = ["loc4A=", "loc4B="]


def documented_services() -> ApiServer:
    """Return a server that knows some pages, libraries and packages."""
    server = ApiServer()
    server.routes |= {
        f"{BRAVE}/web/search": web,
        f"{BRAVE}/news/search": answer({"type": "news", "results": [{**page("news", 1), "breaking": True}]}),
        f"{BRAVE}/images/search": answer({"type": "images", "results": [IMAGE]}),
        f"{BRAVE}/local/pois": answer({"type": "local_pois", "results": [POI, {"id": PLACES[1], "title": "B"}]}),
        f"{BRAVE}/local/descriptions": answer(
            {"type": "local_descriptions", "results": [{"id": PLACES[0], "description": "Old books."}]}
        ),
        f"{CONTEXT7}/libs/search": answer({"results": [LIBRARY]}),
        f"{CONTEXT7}/context": context,
    }
    for name, versions in PYTHON.items():
        server.routes[f"/python/pypi/{name}/json"] = answer(python_document(name, versions, list(versions)[-1]))
        for version in versions:
            server.routes[f"/python/pypi/{name}/{version}/json"] = answer(python_document(name, versions, version))
    for name, versions in NPM.items():
        server.routes[f"/npm/{name.replace('/', '%2F')}"] = npm_route(name, versions)
    releases = [release("v2.0.0", "Broke `get`."), release("1.2.0", "Added `put`."), release("nightly", "Nothing.")]
    server.routes["/github/repos/acme/shelf/releases"] = answer(releases)
    server.routes["/github/repos/acme/lamp/releases"] = answer([])
    server.routes["/github/repos/acme/lamp/contents"] = answer(
        [{"name": "src", "type": "dir"}, {"name": "CHANGELOG.md", "type": "file"}]
    )
    server.routes["/github/repos/acme/lamp/contents/CHANGELOG.md"] = Served(200, LAMP_CHANGES.encode(), {})
    server.routes["/github/repos/acme/desk/contents/docs/changes.rst"] = Served(200, DESK_CHANGES.encode(), {})
    return server


# ---------------------------------------------------------------- Brave


def page(word: str, number: int) -> dict[str, Any]:
    """Return one page as Brave tells of it."""
    return {
        "type": "search_result",
        "title": f"{word} &amp; more {number}",
        "url": f"https://pages.example/{word.replace(' ', '-')}/{number}",
        "description": f"About {word}",
        "page_age": "2026-03-04T05:06:07",
        "meta_url": {"scheme": "https", "hostname": "pages.example"},
        "language": "en",
    }


def web(seen: Seen) -> Served:
    """Answer as the web search does, with places where these are wanted."""
    if seen.headers.get("x-subscription-token") is None:
        return brave_error(422, "VALIDATION", "Unable to validate request parameter(s)")
    if seen.query["result_filter"] == ["locations"]:
        return answer({"type": "search", "locations": {"results": [{"id": place} for place in PLACES]}})
    found = [page(seen.query["q"][0], number) for number in range(int(seen.query["count"][0]))]
    return answer({"type": "search", "query": {"original": seen.query["q"][0]}, "web": {"results": found}})


def brave_error(status: int, code: str, detail: str, **headers: str) -> Served:
    """Return an error as Brave words it."""
    error = {"id": "0d7", "status": status, "code": code, "detail": detail}
    return answer({"type": "ErrorResponse", "error": error, "time": 1}, status, **headers)


IMAGE = {
    "type": "image_result",
    "title": "A cathedral",
    "url": "https://pages.example/cathedral",
    "source": "pages.example",
    "thumbnail": {"src": "https://imgs.example/small.jpg", "width": 50, "height": 40},
    "properties": {"url": "https://pages.example/large.jpg", "width": 500, "height": 400},
}
POI = {
    "type": "location_result",
    "id": PLACES[0],
    "title": "The Book House",
    "url": "https://books.example",
    "postal_address": {"displayAddress": "1 Quay, Utrecht"},
    "contact": {"telephone": "+31 30 000"},
    "rating": {"ratingValue": 4.5, "reviewCount": 120},
    "opening_hours": {"days": [[{"abbr_name": "Mon", "full_name": "Monday", "opens": "09:00", "closes": "18:00"}]]},
    "price_range": "$$",
    "coordinates": [52.09, 5.12],
}

# ---------------------------------------------------------------- Context7

LIBRARY = {
    "id": "/acme/shelf",
    "title": "Shelf",
    "description": "Keeps things",
    "lastUpdateDate": "2026-02-03T00:00:00.000Z",
    "totalSnippets": 42,
    "trustScore": 9.5,
    "benchmarkScore": 88,
    "versions": ["v1.2.0", "v2.0.0"],
}
SNIPPETS = {
    "codeSnippets": [
        {
            "codeTitle": "Put a thing",
            "codeDescription": "Puts it on the shelf.",
            "codeLanguage": "python",
            "codeId": "https://github.com/acme/shelf/blob/main/README.md",
            "codeList": [{"language": "python", "code": "shelf.put(1)"}, {"language": "sh", "code": "shelf put 1"}],
        }
    ],
    "infoSnippets": [{"breadcrumb": "Guide > Putting", "content": "Things stay.", "pageId": "https://shelf.example"}],
}


def context(seen: Seen) -> Served:
    """Answer as Context7 does: one library has moved, one is not read yet."""
    library = seen.query["libraryId"][0]
    if library == "/acme/rack":
        moved = {"error": "library_redirected", "message": "moved", "redirectUrl": "/acme/shelf"}
        return answer(moved, 301)
    if library == "/acme/new":
        return answer({"error": "library_not_finalized", "message": "wait"}, 202)
    if not library.startswith("/acme/shelf"):
        return answer({"error": "library_not_found", "message": f'Library "{library}" not found.'}, 404)
    return answer(SNIPPETS)


# ---------------------------------------------------------------- registries

PYTHON = {
    "shelf": {"1.0.0": "2025-01-01", "1.1.0": "2025-06-01", "1.2.0": "2026-01-01", "2.0.0": "2026-05-01"},
    "lamp": {"0.1": "2025-01-01", "0.2": "2025-02-01", "0.3rc1": "2025-03-01", "0.2.1": "2025-04-01"},
    "desk": {"1.0": "2025-01-01", "1.1": "2025-02-02"},
    "lone": {"3.0": "2024-01-01"},
    "httpx": {"0.27.0": "2024-02-21", "0.27.2": "2024-08-27", "0.28.1": "2024-12-06"},
    "jinja2": {"3.1.2": "2022-04-28", "3.1.6": "2025-03-05"},
    "rich": {"15.0.0": "2026-04-12"},
}
LINKS = {
    "shelf": {"Source": "https://github.com/acme/shelf", "Documentation": "https://shelf.example"},
    "lamp": {"Homepage": "https://github.com/acme/lamp.git"},
    "desk": {"Changelog": "https://github.com/acme/desk/blob/main/docs/changes.rst"},
    "lone": {"Changelog": "https://lone.example/changes"},
}
NPM = {
    "left": {"1.0.0": "2025-01-01", "1.3.0": "2025-05-05", "2.0.0-beta.1": "2026-01-01"},
    "@acme/right": {"1.0.0": "2025-01-01", "3.1.4": "2026-03-14"},
    "react": {"18.0.0": "2022-03-29", "19.0.0": "2024-12-05"},
}
LAMP_CHANGES = (
    "# Changes\n\n## [0.2.1] - 2025-04-01\n\n- Brighter.\n\n### Fixed\n\n- Off means off.\n\n## 0.2\n\nDimmer.\n"
)
DESK_CHANGES = (
    "Changes\n=======\n\nVersion 1.1 (2025-02-02)\n------------------------\n\nA drawer.\n\nVersion 1.0\n-----------\n"
)


def python_document(name: str, versions: dict[str, str], version: str) -> dict[str, Any]:
    """Return what PyPI says of *version*."""
    files = {
        number: [{"upload_time_iso_8601": f"{date}T00:00:00.000000Z", "yanked": number == "1.1.0"}]
        for number, date in versions.items()
    }
    weak = {"id": "PYSEC-2026-1", "summary": "Leaks.", "fixed_in": ["1.2.0"], "aliases": ["CVE-2026-1"]}
    return {
        "info": {
            "name": name,
            "version": version,
            "summary": f"A {name}",
            "license_expression": "MIT",
            "requires_python": ">=3.10",
            "requires_dist": ["rich>=13"],
            "project_urls": LINKS.get(name),
            "home_page": None,
        },
        "releases": files,
        "urls": files[version],
        "vulnerabilities": [weak] if version == "1.0.0" else [],
    }


def npm_route(name: str, versions: dict[str, str]) -> Any:
    """Return the route of one package, which also has a short form."""

    def route(seen: Seen) -> Served:
        told = {number: {"name": name, "version": number, "dependencies": {"left": "^1.0.0"}} for number in versions}
        short = {"name": name, "dist-tags": {"latest": [*versions][1]}, "versions": told}
        if "install-v1" in seen.headers["accept"]:
            return Served(200, json.dumps(short).encode())
        repository = {"type": "git", "url": "git+https://github.com/acme/shelf.git"}
        times = {number: f"{date}T00:00:00.000Z" for number, date in versions.items()}
        return answer({**short, "time": times, "repository": repository, "homepage": "https://left.example"})

    return route


def release(tag: str, body: str) -> dict[str, Any]:
    """Return one release as GitHub tells of it."""
    url = f"https://github.com/acme/shelf/releases/tag/{tag}"
    return {"tag_name": tag, "name": f"Release {tag}", "body": body, "html_url": url, "draft": False}
