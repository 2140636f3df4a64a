"""Takes what is sent to an OpenTelemetry collector, and writes a line for each batch of spans."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Collector(BaseHTTPRequestHandler):
    """Answers each batch."""

    def do_POST(self) -> None:
        """Write where it was sent to and how large it is."""
        body = self.rfile.read(int(self.headers["content-length"]))
        sys.stdout.write(f"{self.path} {len(body)}\n")
        sys.stdout.flush()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()


ThreadingHTTPServer(("", 4318), Collector).serve_forever()
