"""MetricsServer: a small HTTP server of its own for Prometheus, on a port that clients never see."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from http import HTTPStatus
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIServer

import anyio.to_thread
from prometheus_client import CollectorRegistry, start_http_server

from onetool_team.http.host_origin import host_name
from onetool_team.http.listen_address import ListenAddress
from ot.errors import ConfigError
from ot_sdk.network import is_public_name

logger = logging.getLogger(__name__)


def _guard(app: Any, hosts: Collection[str]) -> Any:
    """Return *app* for scrapes alone: a web page whose name leads here, by its own name server, reads nothing."""

    def answer(environ: Mapping[str, Any], start_response: Any) -> Any:
        host = host_name(environ.get("HTTP_HOST", ""))
        status = None
        if not host or (is_public_name(host) and host not in hosts):
            status = HTTPStatus.MISDIRECTED_REQUEST
        elif environ.get("PATH_INFO") != "/metrics":
            status = HTTPStatus.NOT_FOUND
        if status is None:
            return app(environ, start_response)
        start_response(f"{status} {status.phrase}", [("Content-Type", "text/plain"), ("Content-Length", "0")])
        return [b""]

    return answer


class MetricsServer:
    """Answers scrapes on threads of its own, so that a slow one holds up no run."""

    def __init__(self, server: WSGIServer, thread: Thread) -> None:
        """Keep what was started."""
        self._server = server
        self._thread = thread

    @classmethod
    def start(cls, address: str, registry: CollectorRegistry, hosts: Collection[str] = ()) -> MetricsServer:
        """Serve *registry* at *address*, ``HOST:PORT`` or a port of the loopback; *hosts* are names of ours.

        Raises:
            ConfigError: It is malformed, or in use.
        """
        try:
            where = ListenAddress.read(address)
            server, thread = start_http_server(where.port, where.host, registry)
            server.set_app(_guard(server.get_app(), {where.host, *map(host_name, hosts)}))
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
