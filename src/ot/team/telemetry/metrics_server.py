"""MetricsServer: a small HTTP server of its own for Prometheus, on a port that clients never see."""

from __future__ import annotations

import logging
from threading import Thread
from wsgiref.simple_server import WSGIServer

import anyio.to_thread
from prometheus_client import CollectorRegistry, start_http_server

from ot.errors import ConfigError
from ot.team.http.listen_address import ListenAddress

logger = logging.getLogger(__name__)


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
        try:
            where = ListenAddress.read(address)
            server, thread = start_http_server(where.port, where.host, registry)
        except ConfigError as error:
            raise ConfigError(f"telemetry.metrics: {error.message}", hint=error.hint) from None
        except OSError as error:
            why = error.strerror or str(error)
            raise ConfigError(f"telemetry.metrics: '{address}' cannot be served: {why}") from None
        found = cls(server, thread)
        logger.info("metrics are at http://%s:%d/metrics", where.host, found.port)
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
