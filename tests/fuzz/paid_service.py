"""A chat service on this machine that charges: it knows which answers it has sent, and what a record lacks of them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

SLOTS = 4
"""How many questions are in flight to the service that charges."""


HELD = """
SELECT q.fields ->> 'question', 1 + COALESCE(json_array_length(t.answers), 0)
FROM questions q JOIN answers USING (number)
JOIN samples p ON p.number = q.number LEFT JOIN turns t ON t.id = p.id
UNION SELECT id, json_array_length(answers) FROM turns
"""
"""The questions with how many answers a record holds to each; the id of one of several rounds is its words."""


def part_behind_bar(question: str, messages: list[dict[str, Any]]) -> str:
    """The default reply of the service: the end of the question."""
    return question.rpartition("|")[2].strip()


class Service:
    """A chat service on this machine, which knows the questions whose answers it has sent, each with the number of its
    round.

    Args:
        say: gives the answer to a question, from its words and all messages.
    """

    def __init__(self, spell: Callable[[str, list[dict[str, Any]]], str] = part_behind_bar) -> None:
        self.sent: set[tuple[str, int]] = set()
        self.calls = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.calls += 1
                messages = body["messages"]
                content = messages[-1]["content"]
                question = content if isinstance(content, str) else content[-1]["text"]
                time.sleep(0.04)
                choice = {"message": {"content": spell(question, messages)}, "finish_reason": "stop"}
                usage = {"prompt_tokens": 9, "completion_tokens": 3}
                data = json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode()
                service.sent.add((question, 1 + sum(message["role"] == "assistant" for message in messages)))
                self._spell(200, data)

            def do_GET(self) -> None:
                self._spell(404, b"{}")

            def _spell(self, status: int, data: bytes) -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:  # the client was killed
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # a command that is killed resets its connections
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def check(self, out: Path, counts: Counter[str]) -> None:
        """Compares what was sent with what the record of a command that was killed holds."""
        time.sleep(0.2)  # what was in flight is answered now, although nobody listens
        held: set[tuple[str, int]] = set()
        for database in out.rglob("run.sqlite"):
            with closing(sqlite3.connect(database)) as db:
                if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'").fetchone():
                    held |= {(question, n + 1) for question, rounds in db.execute(HELD) for n in range(rounds)}
        dropped = len(self.sent - held)
        counts["paid answers lost in flight"] += dropped
        self.sent &= held  # what is lost is sent again
        if dropped > SLOTS:
            raise AssertionError(
                f"{dropped} answers that were sent are not in the record, and {SLOTS} were in flight at most"
            )
