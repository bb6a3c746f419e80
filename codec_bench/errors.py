"""Errors a person can act on: what happened, what was got, what was expected, what to do.

Conventions
    A `UserError` is printed as one sentence (and a hint) without a traceback, and the command exits with 2.
    Everything that goes wrong with one item of a run is not raised: it becomes a `Score` with a status and a reason.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class UserError(Exception):
    """Something the caller can mend.

    Args:
        message: one sentence that names the item, what was got and what was expected.
        hint: what to do about it, as a sentence or a command.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} (hint: {self.hint})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Children have constructors of their own, and errors travel from workers to the main process.
        return _rebuild, (type(self), self.message, self.hint)


def _rebuild(kind: type[UserError], message: str, hint: str | None) -> UserError:
    error = kind.__new__(kind, message)
    UserError.__init__(error, message, hint=hint)
    return error


class UnknownName(UserError):
    """A name that no registry holds; suggests the nearest ones."""

    def __init__(self, room: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        super().__init__(f"there is no {room} called '{name}'", hint=hint)


class MissingExtra(UserError):
    """An optional package is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the package '{package}', which is not installed",
            hint=f"pip install 'codec-bench[{extra}]'",
        )


class AudioError(UserError):
    """Audio that cannot be read or must not be scored; the message names the item."""


class WeightsError(UserError):
    """Weights that are missing, or that do not fit the model they were given to."""


class RunMismatch(UserError):
    """A run folder that was made by another configuration; the message says what differs."""


class RunLocked(UserError):
    """A run folder that another process is writing."""
