"""An object that must never be unpickled."""

from __future__ import annotations


class Hostile:
    """Unpickling it creates a file.

    Args:
        path: of the file.
    """

    def __init__(self, path: object) -> None:
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))
