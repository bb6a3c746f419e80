"""A worker's end of the pipe to the main process, safe from code that it runs."""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from codec_bench.machine.process_state import end_if_forked

PIPE_CLOSED = 78
"""Exit code of a worker that cannot reach the main process."""


class MainPipe:
    """A worker's end of the pipe to the main process; its forks cannot use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._process = connection, os.getpid()
        os.set_inheritable(connection.fileno(), False)  # programs that are started do not hold it open
        self._opened = os.fstat(connection.fileno()).st_ino
        os.register_at_fork(after_in_child=self._close_in_child)

    def _close_in_child(self) -> None:
        with suppress(OSError):
            self._connection.close()

    def fileno(self) -> int:
        """The file descriptor."""
        return self._connection.fileno()

    def recv(self) -> Any:
        """The next message."""
        self._check()
        return self._connection.recv()

    def send(self, message: Any) -> None:
        """Send a message."""
        self._check()
        self._connection.send(message)

    def _check(self) -> None:
        """End this process if it is a fork, or if its code closed or replaced the pipe."""
        end_if_forked(self._process)
        with suppress(OSError, ValueError):
            if os.fstat(self._connection.fileno()).st_ino == self._opened:
                return
        os._exit(PIPE_CLOSED)
