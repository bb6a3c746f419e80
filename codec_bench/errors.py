"""Errors that a person can act on. Their message says what was got, what was expected, and what to do.

Conventions
    A `UserError` is printed as one sentence and a hint, without a traceback, and the command exits with 2.
    What goes wrong with one item of a run is not raised. It becomes a `Score` with a status and a reason.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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


_MOST_NAMES = 12


class UnknownName(UserError):
    """A name that does not exist; the hint suggests the nearest ones, or lists all, or of many those that are least
    unlike it.

    Of a file of own code it says that a class belongs behind its name.
    """

    def __init__(self, room: str, name: str, known: Iterable[str]) -> None:
        known = sorted(set(known))
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        if name.endswith(".py"):
            hint = f"own code is named by its file and its class: {name}:CLASS"
        elif near:
            hint = f"did you mean {' or '.join(near)}?"
        elif len(known) <= _MOST_NAMES:
            hint = f"known: {', '.join(known)}"
        else:
            closest = difflib.get_close_matches(name, known, n=_MOST_NAMES, cutoff=0.0)
            hint = f"none of {len(known):,} known names is near; the closest are {', '.join(closest)}"
        super().__init__(f"there is no {room} called '{name}'", hint=hint)


class MissingExtra(UserError):
    """An optional package is not installed. `otherwise` says what can be done without it."""

    def __init__(self, feature: str, package: str, extra: str, otherwise: str | None = None) -> None:
        super().__init__(
            f"{feature} needs the package '{package}', which is not installed",
            hint=f"pip install 'codec-bench[{extra}]'" + (f"; {otherwise}" if otherwise else ""),
        )


def optional_package(name: str, missing: UserError) -> Any:
    """A package that need not be installed.

    Raises:
        UserError: `missing`, if it is not.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise missing from error


class MissingResource(UserError):
    """A file that a package does not bring along, and that it downloads or finds on the machine, is missing."""


class AudioError(UserError):
    """Audio that cannot be read or scored; the message names the item."""


class WeightsError(UserError):
    """Weights are missing or do not fit the model."""


class RunMismatch(UserError):
    """A run folder was begun with other settings; the message says what differs."""


class DeviceUnusable(UserError):
    """A process cannot compute on its device at all, which says nothing of the items that it was given."""


class DeviceFull(DeviceUnusable):
    """The first thing that a process puts on a GPU does not fit into its memory."""

    def __init__(self, item: str, device: str, free: str) -> None:
        super().__init__(
            f"'{device}' has no room for {item}: {free}",
            hint="another program may fill it (nvidia-smi lists them): end it, or give another --device, or --device cpu",
        )


class DamagedRecord(UserError):
    """A run record is not as it was written; the message says what is damaged."""


class AnswersPending(UserError):
    """Questions wait at a service, which will answer them later.

    Attributes:
        wait: awaited until they are answered; None if that is not possible.
    """

    wait: Callable[[], Awaitable[None]] | None = None

    def __init__(self, message: str, *, hint: str, wait: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


class RunLocked(UserError):
    """Another process is writing the run folder."""


class Note(UserWarning):
    """Something that a person should know and that is not an error. Commands print it to stderr."""


HubFault = Literal["gated", "revision", "missing", "server", "disk", "network"]


def hub_fault(error: BaseException) -> tuple[HubFault, str]:
    """What an error of the Hugging Face hub's package means.

    Returns:
        Whether the owners want their terms accepted first (`gated`), there is no such revision, there is no such
        repository or it may not be seen (`missing`), the server answered otherwise (`server`), a file cannot be written
        (`disk`), or no server answered (`network`); and the server's status (`missing`, `server`) or the reason.
    """
    from huggingface_hub import errors

    chain, status = _causes(error), server_status(error)
    if any(isinstance(e, errors.GatedRepoError) for e in chain):
        return "gated", str(status)
    if any(isinstance(e, errors.RevisionNotFoundError) for e in chain):
        return "revision", str(status)
    if any(isinstance(e, errors.RepositoryNotFoundError) for e in chain) or status in (401, 403, 404):
        return "missing", str(status)
    if status is not None:
        return "server", str(status)
    if isinstance(error, OSError) and error.filename is not None:
        return "disk", f"'{error.filename}' cannot be written: {error.strerror}"
    return "network", str(chain[-1]).split("\n")[0] or type(chain[-1]).__name__


def server_status(error: BaseException) -> int | None:
    """The HTTP status that a server answered, or None if no server answered."""
    return next((r.status_code for e in _causes(error) if (r := getattr(e, "response", None)) is not None), None)


def _causes(error: BaseException) -> list[BaseException]:
    """An error and those that it was raised from."""
    chain = [error]
    while (below := chain[-1].__cause__ or chain[-1].__context__) is not None and below not in chain:
        chain.append(below)
    return chain


def describe(error: BaseException) -> str:
    """An exception as one sentence."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def plain(text: str, most: int = 500) -> str:
    """Text from data, safe to print: characters that control the terminal or the direction of writing, and halves of
    characters, become `�`.

    Of a text of more than `most` characters, the beginning and the end are shown.
    """
    if len(text) > most:
        end = most // 4
        text = f"{text[: most - end - 1]}…{text[-end:]}"
    return _CONTROLS.sub("�", text)


def beginning(text: str, most: int) -> str:
    """A text, or its first `most` characters with the number of those that are in the record alone."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters are in the record)"


@contextmanager
def on_disk(message: str, hint: str | None = None) -> Iterator[None]:
    """Inside, what the disk refuses is a `UserError`: what is said, and why. So is a file that is not text in UTF-8.

    Raises:
        UserError: the disk refused something, or a file is no text.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"{message}: {error.strerror or error}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{message}: it is not UTF-8 text (byte {error.start})", hint=hint) from error


def count_of(count: int, noun: str) -> str:
    """A number with its noun: `1 item`, `1,088 items`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Names with commas between them: at most `most`, and how many others there are.

    >>> first_of(("a", "b", "c"), 2)
    'a, b and 1 more'
    """
    left = len(names) - most
    return between.join(names[:most]) + (f" and {left:,} more" if left > 0 else "")
