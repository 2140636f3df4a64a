"""MetricsServer: a small HTTP server of its own for Prometheus, on a port that clients never see."""

from __future__ import annotations

import ipaddress
import logging
from threading import Thread
from wsgiref.simple_server import WSGIServer

import anyio.to_thread
from prometheus_client import CollectorRegistry, start_http_server

from ot.errors import ConfigError

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


class MetricsServer:
    """Answers scrapes on threads of its own, so that a slow one holds up no run."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        """Keep what was started."""
        self._server = server
        self._thread = thread

    @classmethod
    def start(cls, address: str, registry: CollectorRegistry) -> MetricsServer:
        """Serve *registry* at *address*, ``HOST:PORT`` or a port of the loopback.

        Raises:
            ConfigError: It is malformed, or in use.
        """
        host, port = host_and_port(address)
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as error:
            why = error.strerror or str(error)
            raise ConfigError(f"telemetry.metrics: {address!r} cannot be served: {why}") from None
        found = cls(server, thread)
        logger.info("metrics are at http://%s:%d/metrics", host, found.port)
        return found

    @property
    def port(self) -> int:
        """The port, which the system chose where the settings say 0."""
        return self._server.server_port

    async def aclose(self) -> None:
        """Stop serving."""
        await anyio.to_thread.run_sync(self._server.shutdown)
        self._server.server_close()
        await anyio.to_thread.run_sync(self._thread.join)


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of ``HOST:PORT``, ``[IPv6]:PORT`` or ``PORT``, which means the loopback.

    Raises:
        ConfigError: It is none of them.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if not port.isdecimal() or int(port) > 65535 or not _is_host(host):
        hint = "write HOST:PORT, such as 127.0.0.1:9464"
        raise ConfigError(f"telemetry.metrics: {address!r} is malformed", hint=hint)
    return host, int(port)


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.replace("-", "").replace(".", "").isalnum()
    return True
