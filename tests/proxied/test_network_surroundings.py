"""What the environment says of the network: proxies, and whose certificates are trusted."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ot.errors import ServerUnavailable
from proxied.desk import door_to, http_spec
from proxied.raw_http_server import raw_server

pytestmark = pytest.mark.anyio
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *PROXIES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# ---------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the certificate of an authority, and a server's that it signed."""
    place = tmp_path_factory.mktemp("authority")

    def openssl(*words: str) -> str:
        return subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True, text=True).stdout

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=Test CA", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(*new, "-subj", "/CN=127.0.0.1", "-keyout", "key.pem", "-out", "request.pem")
    (place / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:mcp.example\n")
    signing = ("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    openssl(*signing, "-days", "2", "-extfile", "names", "-out", "cert.pem")
    folder = place / "folder"
    folder.mkdir()
    (folder / f"{openssl('x509', '-hash', '-noout', '-in', 'ca.pem').strip()}.0").write_text(
        (place / "ca.pem").read_text()
    )
    return place


def served_with(authority: Path) -> ssl.SSLContext:
    """Return the context of a server that shows the signed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    return context


@pytest.mark.parametrize("variable", VARIABLES)
async def test_the_usual_variables_name_authorities_that_are_trusted(
    variable: str, authority: Path, monkeypatch: pytest.MonkeyPatch
):
    async with raw_server(ssl=served_with(authority)) as (url, raw):
        async with door_to(http_spec(url)) as door:
            with pytest.raises(ServerUnavailable, match="TLS certificate"):
                await door.call("buy", what="tea")
        assert raw.seen == []
        monkeypatch.setenv(variable, str(authority / ("folder" if variable == "SSL_CERT_DIR" else "ca.pem")))
        async with door_to(http_spec(url)) as door:
            assert await door.call("buy", what="tea") == "bought tea"


@pytest.mark.parametrize(("variable", "text"), [("SSL_CERT_FILE", None), ("REQUESTS_CA_BUNDLE", "no certificate")])
async def test_a_variable_that_names_no_certificates_is_said_to_be_wrong(
    variable: str, text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "ca.pem"
    if text:
        file.write_text(text)
    monkeypatch.setenv(variable, str(file))
    async with raw_server() as (url, _), door_to(http_spec(url)) as door:
        with pytest.raises(ServerUnavailable, match=f"{variable} names '{file}', where no certificates can be read"):
            await door.call("buy", what="tea")


# ---------------------------------------------------------------- proxies


class Proxy:
    """A real proxy on loopback that knows one name, for tunnels and for plain requests."""

    def __init__(self, target: str) -> None:
        self.asked: list[str] = []
        self._port = urlsplit(target).port
        self.refusal = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            self.asked.append(head.split(b"\r\n")[0].decode())
            if self.refusal:
                writer.write(self.refusal)
                return writer.close()
            there, to = await asyncio.open_connection("127.0.0.1", self._port)
            if head.startswith(b"CONNECT"):
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                to.write(head)
            await asyncio.gather(_pass_on(reader, to), _pass_on(there, writer))
        return None


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def proxy_to(target: str) -> AsyncGenerator[tuple[str, Proxy]]:
    """Yield the address of a proxy, and the proxy."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", proxy
    finally:
        server.close()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_server_is_reached_through_the_proxy_that_the_environment_names(
    variable: str, monkeypatch: pytest.MonkeyPatch
):
    async with raw_server() as (url, raw), proxy_to(url) as (address, proxy):
        monkeypatch.setenv(variable, address)
        # A name that only the proxy knows, and a project's: the proxy itself may be internal.
        async with door_to(http_spec("http://mcp.example/mcp", of_project=True)) as door:
            assert await door.call("buy", what="tea") == "bought tea"
        assert raw.effects == ["tea"]
        assert proxy.asked[0] == "POST http://mcp.example/mcp HTTP/1.1"


async def test_a_tunnel_through_a_proxy_carries_tls_to_the_server(authority: Path, monkeypatch: pytest.MonkeyPatch):
    async with raw_server(ssl=served_with(authority)) as (url, raw), proxy_to(url) as (address, proxy):
        monkeypatch.setenv("HTTPS_PROXY", address)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
        async with door_to(http_spec("https://mcp.example/mcp")) as door:
            assert await door.call("buy", what="tea") == "bought tea"
        assert set(proxy.asked) == {"CONNECT mcp.example:443 HTTP/1.1"}
        assert raw.effects == ["tea"]


async def test_a_host_of_no_proxy_is_reached_without_it(monkeypatch: pytest.MonkeyPatch):
    async with raw_server() as (url, raw), proxy_to(url) as (address, proxy):
        monkeypatch.setenv("HTTP_PROXY", address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with door_to(http_spec(url)) as door:
            assert await door.call("buy", what="tea") == "bought tea"
        assert (proxy.asked, raw.effects) == ([], ["tea"])


async def test_a_proxy_is_no_way_around_the_rule_against_internal_addresses(monkeypatch: pytest.MonkeyPatch):
    async with raw_server() as (url, raw), proxy_to(url) as (address, proxy):
        monkeypatch.setenv("HTTP_PROXY", address)
        async with door_to(http_spec(url, of_project=True)) as door:
            with pytest.raises(ServerUnavailable, match="a project's server may not be there"):
                await door.call("buy", what="tea")
        assert (proxy.asked, raw.seen) == ([], [])


async def test_a_proxy_that_refuses_is_named_and_the_call_has_no_effect(
    authority: Path, monkeypatch: pytest.MonkeyPatch
):
    async with raw_server(ssl=served_with(authority)) as (url, raw), proxy_to(url) as (address, proxy):
        monkeypatch.setenv("HTTPS_PROXY", address)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority / "ca.pem"))
        async with door_to(http_spec("https://mcp.example/mcp")) as door:
            await door.call("buy", what="tea")
            proxy.refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
            await raw.end()
            with pytest.raises(ServerUnavailable, match="the proxy refused the connection; check HTTPS_PR") as caught:
                await door.call("buy", what="milk")
        assert not caught.value.unknown
        assert raw.effects == ["tea"]


@pytest.mark.parametrize("address", ["ftp://proxy.example", "socks5://127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_said_to_be_the_reason(address: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", address)
    async with door_to(http_spec("https://mcp.example/mcp")) as door:
        with pytest.raises(ServerUnavailable, match="the proxy that the environment names cannot be used"):
            await door.call("buy", what="tea")
