# /// script
# requires-python = ">=3.12"
# dependencies = ["httpx2>=2.16,<3"]
# ///
"""Search the web, news, images and places with Brave Search (needs a key)."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "brave"

__all__ = ["image_search", "local_search", "news_search", "search", "search_batch", "web_search"]
__ot_read_only__ = ["image_search", "local_search", "news_search", "search", "search_batch", "web_search"]
__ot_requires__ = {"secrets": ["BRAVE_API_KEY"]}

import re
from dataclasses import dataclass
from html import unescape
from typing import Any, Literal, TypedDict

from arguments import check_choice, check_text
from service_client import (
    Params,
    ServiceClient,
    WebService,
    ask_each,
    asking,
    at,
    check_key,
    check_timeout,
    check_url,
    list_at,
    number_at,
    rows_at,
    text_at,
)

import ot_sdk
from ot_sdk.numbers import check_number

KEY = "BRAVE_API_KEY"
KEY_HINT = (
    f"Put a key into ~/.onetool/secrets.yaml ({KEY}: ...) or the server's environment; "
    "https://api-dashboard.search.brave.com gives one"
)
FRESHNESS = {"": "", "day": "pd", "week": "pw", "month": "pm", "year": "py"}
DATES = re.compile(r"\d{4}-\d\d-\d\dto\d{4}-\d\d-\d\d", re.ASCII)
CODE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z]{2,4})?", re.ASCII)
MAX_QUERY, MAX_WORDS = 400, 50
MAX_QUERIES = 50

SafeSearch = Literal["off", "moderate", "strict"]


@dataclass(frozen=True)
class Config:
    """The settings ``tools.brave``."""

    url: str = "https://api.search.brave.com/res/v1"
    """Where Brave's API is."""
    timeout: float = 25.0
    """Seconds for one call, repeated requests included."""
    parallel: int = 4
    """Requests of search_batch at once."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, and an address that is not Brave's."""
        check_url("url", self.url, ["api.search.brave.com"])
        check_timeout("timeout", self.timeout)
        check_number("parallel", self.parallel, 1, 20)


class WebHit(TypedDict):
    """A page; ``date`` is its day in ISO form, or empty."""

    title: str
    url: str
    description: str
    site: str
    date: str


class NewsHit(WebHit):
    """A report; ``breaking`` where Brave says so."""

    breaking: bool


class ImageHit(TypedDict):
    """An image: its own address, and that of the page which shows it."""

    title: str
    url: str
    page: str
    thumbnail: str
    width: int
    height: int
    site: str


class LocalPlace(TypedDict):
    """A place; what Brave does not know is empty or None."""

    title: str
    url: str
    address: str
    phone: str
    rating: float | None
    reviews: int
    hours: list[str]
    price: str
    coordinates: list[float]
    description: str


class AnsweredQuery(TypedDict):
    """The hits of one question of several; ``error`` says why there are none."""

    query: str
    hits: list[WebHit]
    error: str


async def search(*, query: str, count: int = 10) -> list[WebHit]:
    """Search the web, as with Google: the pages that answer a question best.

    Args:
        query: What to look for, in up to 400 characters; site:, "..." and -word work as in a browser.
        count: The most hits to return, 1 to 20.

    Returns:
        Title, address, description, site and date of each page, best first.

    Example:
        brave.search(query="python 3.14 release notes", count=5)
    """
    params = [*_question(query), *_count(count, 20)]
    async with asking(_service()) as api:
        return await _web(api, params)


async def web_search(
    *,
    query: str,
    count: int = 10,
    page: int = 1,
    country: str = "",
    language: str = "",
    freshness: str = "",
    safesearch: SafeSearch = "moderate",
) -> list[WebHit]:
    """Search the web with filters: country, language, age, further pages of hits.

    Args:
        query: What to look for, in up to 400 characters.
        count: The most hits to return, 1 to 20.
        page: Which page of hits, 1 to 10.
        country: Where the pages come from, such as 'DE'.
        language: Their language, such as 'de'.
        freshness: 'day', 'week', 'month' or 'year', or dates like '2026-01-01to2026-03-31'.
        safesearch: 'off', 'moderate' or 'strict'.

    Returns:
        Title, address, description, site and date of each page, best first.

    Example:
        brave.web_search(query="asyncio timeouts", country="US", freshness="year")
    """
    filters = _filters(country, language, freshness)
    check_choice("safesearch", safesearch, ("off", "moderate", "strict"))
    params = [*_question(query), *_count(count, 20), *_page(page), *filters, ("safesearch", safesearch)]
    async with asking(_service()) as api:
        return await _web(api, params)


async def news_search(
    *, query: str, count: int = 10, page: int = 1, country: str = "", language: str = "", freshness: str = ""
) -> list[NewsHit]:
    """Search the news: headlines and articles of the last hours, days or weeks.

    Args:
        query: What to look for, in up to 400 characters.
        count: The most reports to return, 1 to 50.
        page: Which page of reports, 1 to 10.
        country: Where the reports come from, such as 'DE'.
        language: Their language, such as 'de'.
        freshness: 'day', 'week', 'month' or 'year', or dates like '2026-01-01to2026-03-31'.

    Returns:
        Title, address, description, site and date of each report, and whether it is breaking news.

    Example:
        brave.news_search(query="open source licences", freshness="week")
    """
    filters = _filters(country, language, freshness)
    params = [*_question(query), *_count(count, 50), *_page(page), *filters]
    async with asking(_service()) as api:
        found = await api.json("news", "search", params=params)
    return [{**_hit(row), "breaking": at(row, "breaking") is True} for row in rows_at(found, "results")]


async def image_search(
    *,
    query: str,
    count: int = 20,
    country: str = "",
    language: str = "",
    safesearch: Literal["off", "strict"] = "strict",
) -> list[ImageHit]:
    """Search images: pictures, photos and logos on the web.

    Args:
        query: What to look for, in up to 400 characters.
        count: The most images to return, 1 to 200.
        country: Where they come from, such as 'DE'.
        language: The language of their pages, such as 'de'.
        safesearch: 'off' or 'strict'.

    Returns:
        Title, address, thumbnail and size of each image, and the page and site that show it.

    Example:
        brave.image_search(query="gothic cathedral", count=5)
    """
    check_choice("safesearch", safesearch, ("off", "strict"))
    filters = _filters(country, language, "")
    params = [*_question(query), *_count(count, 200), *filters, ("safesearch", safesearch)]
    async with asking(_service()) as api:
        found = await api.json("images", "search", params=params)
    return [_image(row) for row in rows_at(found, "results")]


async def local_search(*, query: str, count: int = 5, country: str = "", language: str = "") -> list[LocalPlace]:
    """Search places: shops, restaurants, offices, with address, phone, rating and opening hours.

    Args:
        query: What and where, such as 'bookshops in Utrecht'.
        count: The most places to return, 1 to 20.
        country: The country to search in, such as 'NL'.
        language: The language of the answers, such as 'en'.

    Returns:
        What is known of each place; an empty list when Brave finds no places in the question.

    Example:
        brave.local_search(query="bookshops in Utrecht", count=3)
    """
    check_number("count", count, 1, 20)
    params = [*_question(query), *_filters(country, language, ""), ("result_filter", "locations")]
    async with asking(_service()) as api:
        found = await api.json("web", "search", params=params)
        ids = [place for row in rows_at(found, "locations", "results") if (place := text_at(row, "id"))][:count]
        if not ids:
            return []
        named = [("ids", place) for place in ids]
        # One after the other: plans allow few requests at once.
        places = await api.json("local", "pois", params=named)
        told = await api.json("local", "descriptions", params=named)
    texts = {text_at(row, "id"): text_at(row, "description") for row in rows_at(told, "results")}
    return [_place(row, texts.get(text_at(row, "id"), "")) for row in rows_at(places, "results")]


async def search_batch(*, queries: list[str], count: int = 5) -> list[AnsweredQuery]:
    """Search the web for several questions at once, in parallel.

    Args:
        queries: The questions, up to 50.
        count: The most hits to return for each, 1 to 20.

    Returns:
        The question, its hits and an error for each question, in the order given; an error for all is raised.

    Example:
        brave.search_batch(queries=["sqlite wal mode", "duckdb vs sqlite"], count=3)
    """
    if not isinstance(queries, list) or not 1 <= len(queries) <= MAX_QUERIES:  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        raise ValueError(f"queries must be a list of 1 to {MAX_QUERIES} texts")
    limit = _count(count, 20)
    questions = [[*_question(query), *limit] for query in queries]
    answers = await ask_each(_service(), questions, _web, _config().parallel)
    return [_make_row(query, answer) for query, answer in zip(queries, answers, strict=True)]


# ---------------------------------------------------------------- asking


def _config() -> Config:
    return ot_sdk.config()


def _service() -> WebService:
    settings = _config()
    try:
        key = ot_sdk.secret(KEY).reveal()
    except ot_sdk.SecretNotGranted:
        raise PermissionError(f"brave needs the secret {KEY}, which is not set. {KEY_HINT}.") from None
    key = check_key(KEY, key)
    return WebService(
        name="Brave Search",
        pack=pack,
        url=settings.url,
        timeout=settings.timeout,
        max_bytes=8 << 20,
        key=key,
        key_hint=KEY_HINT,
        headers={"x-subscription-token": key},
    )


async def _web(api: ServiceClient, params: Params) -> list[WebHit]:
    found = await api.json("web", "search", params=[*params, ("text_decorations", "false"), ("result_filter", "web")])
    return [_hit(row) for row in rows_at(found, "web", "results")]


def _make_row(query: str, answer: list[WebHit] | Exception) -> AnsweredQuery:
    if isinstance(answer, Exception):
        return {"query": query, "hits": [], "error": str(answer)}
    return {"query": query, "hits": answer, "error": ""}


# ---------------------------------------------------------------- arguments


def _question(query: str) -> list[tuple[str, str | int]]:
    check_text("query", query, MAX_QUERY)
    if (words := len(query.split())) > MAX_WORDS:
        raise ValueError(f"query has {words} words, more than {MAX_WORDS}: shorten it")
    return [("q", query)]


def _count(count: int, most: int) -> list[tuple[str, str | int]]:
    return [("count", check_number("count", count, 1, most))]


def _page(page: int) -> list[tuple[str, str | int]]:
    return [("offset", check_number("page", page, 1, 10) - 1)]


def _filters(country: str, language: str, freshness: str) -> list[tuple[str, str | int]]:
    for name, value in (("country", country), ("language", language)):
        if value and not CODE.fullmatch(check_text(name, value, 10)):
            raise ValueError(f"{name} must be a code such as 'DE' or 'de', got {value!r}")
    age = FRESHNESS.get(freshness, freshness)
    if freshness and freshness not in FRESHNESS and not DATES.fullmatch(check_text("freshness", freshness, 30)):
        known = "'day', 'week', 'month', 'year' or dates like '2026-01-01to2026-03-31'"
        raise ValueError(f"freshness must be {known}, got {freshness!r}")
    found: list[tuple[str, str | int]] = [("country", country.upper()), ("search_lang", language), ("freshness", age)]
    return [(name, value) for name, value in found if value]


# ---------------------------------------------------------------- answers


def _hit(row: dict[str, Any]) -> WebHit:
    return {
        "title": unescape(text_at(row, "title")),
        "url": text_at(row, "url"),
        "description": unescape(text_at(row, "description")),
        "site": text_at(row, "meta_url", "hostname"),
        "date": text_at(row, "page_age")[:10],
    }


def _image(row: dict[str, Any]) -> ImageHit:
    return {
        "title": unescape(text_at(row, "title")),
        "url": text_at(row, "properties", "url"),
        "page": text_at(row, "url"),
        "thumbnail": text_at(row, "thumbnail", "src"),
        "width": int(number_at(row, "properties", "width") or 0),
        "height": int(number_at(row, "properties", "height") or 0),
        "site": text_at(row, "source"),
    }


def _place(row: dict[str, Any], description: str) -> LocalPlace:
    return {
        "title": unescape(text_at(row, "title")),
        "url": text_at(row, "url"),
        "address": text_at(row, "postal_address", "displayAddress"),
        "phone": text_at(row, "contact", "telephone"),
        "rating": number_at(row, "rating", "ratingValue"),
        "reviews": int(number_at(row, "rating", "reviewCount") or 0),
        "hours": [hours for day in list_at(row, "opening_hours", "days") for hours in _hours(day)],
        "price": text_at(row, "price_range"),
        "coordinates": _numbers(list_at(row, "coordinates")),
        "description": description,
    }


def _numbers(parts: list[Any]) -> list[float]:
    found = [number_at({"part": part}, "part") for part in parts]
    return [number for number in found if number is not None]


def _hours(day: Any) -> list[str]:
    """Return a day's opening hours, of which there may be several."""
    rows = rows_at({"day": day}, "day") or rows_at({"day": [day]}, "day")
    return [f"{text_at(row, 'full_name')} {text_at(row, 'opens')}-{text_at(row, 'closes')}" for row in rows]
