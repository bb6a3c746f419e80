"""Errors that a person can act on: value found, value expected, what to do.

A `UserError` is printed as one sentence and a hint, without a traceback, and the command exits with 2. A failure of one
item of a run becomes a `Score` with a status and a reason.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

from codec_bench.messages import Diagnostic, is_code

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class UserError(Exception):
    """An error that the caller can correct.

    Args:
        code: of a catalogue of `codec_bench.messages`; a diagnostic or a sentence in its place is taken as it is.
        hint: what to do about it, as a sentence or a command.
        parameters: of the code.

    Examples:
        >>> str(UserError("no_file", path="a.wav", hint="name another"))
        "there is no file 'a.wav' (hint: name another)"
    """

    def __init__(self, code: str, *, hint: str | None = None, **parameters: Any) -> None:
        message = Diagnostic(code, **parameters) if parameters or is_code(code) else code
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code: str | None = getattr(message, "code", None)

    def __str__(self) -> str:
        return str(self.message) if self.hint is None else f"{self.message} (hint: {self.hint})"

    def as_dict(self) -> dict[str, Any]:
        """As JSON values; the code is None where the message has none."""
        values = self.message.as_dict() if isinstance(self.message, Diagnostic) else {}
        parameters = {name: value for name, value in values.items() if name != "code"}
        return {"code": self.code, "message": str(self.message), "hint": self.hint, "parameters": parameters}

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers send errors to the main process, and subclasses have constructors with other arguments.
        return _rebuild, (type(self), self.message, self.hint)


def _rebuild(kind: type[UserError], message: str, hint: str | None) -> UserError:
    error = kind.__new__(kind, message)
    UserError.__init__(error, message, hint=hint)
    return error


_MOST_NAMES = 12


class UnknownName(UserError):
    """A name that does not exist; the hint lists the nearest or all names.

    Args:
        kind: the kind of name, such as `metric`; `codec_bench.messages.general` has its words.
        within: the file, run or other collection that has no such name.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, within: object = None) -> None:
        location = {} if within is None else {"within": within}
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
        super().__init__("unknown_name", kind=kind, name=name, **location, hint=hint)


class MissingExtra(UserError):
    """An optional package is not installed.

    Args:
        feature: what needs it, such as `codec`; `codec_bench.messages.general` has its words.
        otherwise: an alternative, for the hint.
        name: of the codec, recogniser or file that needs it.
    """

    def __init__(self, feature: str, package: str, extra: str, otherwise: str | None = None, *, name: str = "") -> None:
        super().__init__(
            "package_not_installed",
            feature=feature,
            name=name,
            package=package,
            hint=f"pip install 'codec-bench[{extra}]'" + (f"; {otherwise}" if otherwise else ""),
        )


def optional_package(name: str, missing: UserError) -> Any:
    """Import an optional package, or raise `missing`."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise missing from error


class MissingResource(UserError):
    """A file that a package downloads or finds on the machine is missing."""


class AudioError(UserError):
    """Audio that cannot be read or scored; the message names the item."""


class WeightsError(UserError):
    """Weights are missing or do not fit the model."""


class RunMismatch(UserError):
    """A run folder has other settings; the message names the differences."""


class DeviceUnusable(UserError):
    """A process cannot compute on its device at all; its items are not at fault."""


class DeviceFull(DeviceUnusable):
    """The first object of a process on a GPU does not fit into its memory."""

    def __init__(self, item: str, device: str, free: str) -> None:
        super().__init__(
            "device_full",
            device=device,
            item=item,
            free=free,
            hint="end other programs on it (nvidia-smi lists them), or give another --device, or --device cpu",
        )


class DamagedRecord(UserError):
    """A run record is not as written; the message names the damage."""


class AnswersPending(UserError):
    """Questions wait at a service for later answers.

    Attributes:
        wait: awaited until they are answered, or None.
    """

    wait: Callable[[], Awaitable[None]] | None = None

    def __init__(
        self, code: str, *, hint: str, wait: Callable[[], Awaitable[None]] | None = None, **parameters: Any
    ) -> None:
        super().__init__(code, hint=hint, **parameters)
        self.wait = wait


class RunLocked(UserError):
    """Another process is writing the run folder."""


class Note(UserWarning):
    """Information for a person that is no error. Commands print it to stderr.

    Args:
        code: of a catalogue of `codec_bench.messages`. parameters: of the code.
    """

    def __init__(self, code: str, **parameters: Any) -> None:
        message = Diagnostic(code, **parameters) if parameters or is_code(code) else code
        super().__init__(message)
        self.message = message
        self.code: str | None = getattr(message, "code", None)


HubFault = Literal["gated", "revision", "missing", "server", "disk", "network"]


def hub_fault(error: BaseException) -> tuple[HubFault, str]:
    """Classify an error of the Hugging Face hub's package.

    Returns:
        `gated` (its terms must be accepted), `revision` (does not exist), `missing` (no such or no visible repository),
        `server` (another answer), `disk` (a file cannot be written), or `network` (no server answered); and the
        server's status (`missing`, `server`) or the reason.
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
    """The HTTP status of a server's answer, or None."""
    return next((r.status_code for e in _causes(error) if (r := getattr(e, "response", None)) is not None), None)


def _causes(error: BaseException) -> list[BaseException]:
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
    """Text from data, safe to print: control characters and surrogates become `�`.

    Of more than `most` characters, the beginning and the end are shown.
    """
    if len(text) > most:
        end = most // 4
        text = f"{text[: most - end - 1]}…{text[-end:]}"
    return _CONTROLS.sub("�", text)


def beginning(text: str, most: int) -> str:
    """A text, or its first `most` characters and the number of the others."""
    return text if len(text) <= most else f"{text[:most]} … ({len(text) - most:,} more characters are in the record)"


@contextmanager
def on_disk(code: str, *, hint: str | None = None, **parameters: Any) -> Iterator[None]:
    """Raise disk errors and invalid UTF-8 as a `UserError` of the code, whose `cause` they are."""
    try:
        yield
    except OSError as error:
        raise UserError(code, **parameters, cause=error.strerror or str(error), hint=hint) from error
    except UnicodeDecodeError as error:
        cause = Diagnostic("not_utf8", byte=error.start)
        raise UserError(code, **parameters, cause=cause, hint=hint) from error


def count_of(count: int, noun: str) -> str:
    """A number with its noun: `1 item`, `1,088 items`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """At most `most` names with commas, and the number of the others.

    >>> first_of(("a", "b", "c"), 2)
    'a, b and 1 more'
    """
    left = len(names) - most
    return between.join(names[:most]) + (f" and {left:,} more" if left > 0 else "")
