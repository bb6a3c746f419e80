"""What the services that tests start on this machine share: a connection, and a server with a thread of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Connection(BaseHTTPRequestHandler):
    """A connection that stays open between requests and writes nothing to the terminal."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a reply is two packets; the second would wait for the first to be acknowledged

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def body(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Sends a reply of known length. A reply to HEAD has the headers alone."""
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_json(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        """Sends a value as JSON."""
        self.send(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


class LocalServer(ThreadingHTTPServer):
    """A server that answers from the start, at `url`, until it is closed. Its connections find it as `self.server`."""

    daemon_threads = True
    # With the five of the standard library, a burst of connections to a busy machine is dropped, and tried again for a
    # minute.
    request_queue_size = 256

    def __init__(self, connection: type[Connection]) -> None:
        super().__init__(("127.0.0.1", 0), connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that hang up, because some tests do that on purpose."""

    def close(self) -> None:
        """Answers nobody any more."""
        self.shutdown()
        self.server_close()
        self._thread.join()
