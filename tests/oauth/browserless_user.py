"""A person with no browser: opens an address, and follows where it leads until something answers."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx2

MOST_REDIRECTS = 10


class BrowserlessUser:
    """Who logs in, and agrees to everything."""

    def __init__(self, name: str = "ada") -> None:
        """Be *name* at every authorization server; nobody, when it is empty, which means refusal."""
        self._name = name

    async def open(self, url: str) -> httpx2.Response:
        """Return what answers in the end: the callback's page, or the refusal of an authorization server."""
        async with self._client() as client:
            response = await client.get(url)
            for _ in range(MOST_REDIRECTS):
                if not response.is_redirect:
                    return response
                response = await client.get(response.headers["location"])
            raise AssertionError(f"{url} never stops redirecting")

    async def redirected_to(self, url: str) -> str:
        """Return where the authorization server sends the browser, without going there."""
        async with self._client() as client:
            response = await client.get(url)
        assert response.is_redirect, (response.status_code, response.text)
        return response.headers["location"]

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(cookies={"user": self._name}, trust_env=False)


def query_of(url: str) -> dict[str, str]:
    """Return the parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
