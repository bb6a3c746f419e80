"""Errors that a person can act on. Their message says what was got, what was expected, and what to do.

Conventions
    A `UserError` is printed as one sentence and a hint, without a traceback, and the command exits with 2.
    What goes wrong with one item of a run is not raised. It becomes a `Score` with a status and a reason.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class UserError(Exception):
    """Something that the caller can put right.

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
        # Workers send errors to the main process, and subclasses have constructors with other arguments.
        return _rebuild, (type(self), self.message, self.hint)


def _rebuild(kind: type[UserError], message: str, hint: str | None) -> UserError:
    error = kind.__new__(kind, message)
    UserError.__init__(error, message, hint=hint)
    return error


class UnknownName(UserError):
    """A name that does not exist; the hint suggests the nearest ones, or lists all."""

    def __init__(self, room: str, name: str, known: Iterable[str]) -> None:
        known = sorted(set(known))
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
    """Audio that cannot be read or scored; the message names the item."""


class WeightsError(UserError):
    """Weights are missing or do not fit the model."""


class RunMismatch(UserError):
    """A run folder was begun with other settings; the message says what differs."""


class RunLocked(UserError):
    """Another process is writing the run folder."""
