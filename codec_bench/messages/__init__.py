"""Diagnostics: a code with parameters for records, and its sentence for people.

Which file to open
    `checks.py` checks of codecs; `codecs.py` outputs of codecs; `profiling.py` profiles; `engine.py` signals, items
    and stages; `features.py` results of models; `metrics.py` scores of sounds; `text.py` compared texts;
    `benchmark.py` questions, answers and verdicts; `definitions.py` definitions of benchmarks and checked data;
    `judges.py` tests of judges; `building.py` items of new data sets;
    `agreement.py`, `cluster.py`, `conversation.py`, `gating.py`, `leaderboards.py`, `serving.py` and `site.py` for the
    applications of these names;
    `models.py` answers of models; `store.py` records and files of other programs;
    `stats.py` values, intervals, tests and marks; `data.py` data sets and tables; `decoding.py` files of sounds;
    `weights.py` checkpoints; `listening.py` screened raters; `installation.py` findings of `doctor` and `validate`;
    `config.py` options and named systems; `api.py` requests; `workers.py` programs and environments;
    `general.py` for several rooms; `errors.py` the exceptions that carry them.

Every other module of this package is the catalogue of one room, its codes by severity. Code decides by
`Diagnostic.code` and its parameters, never by sentences. A sentence is a format string over the parameters, or a
function of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, NamedTuple, overload

Severity = Literal["info", "warning", "error"]
"""`info`: nothing is wrong. `warning`: a value may mislead. `error`: there is no value that describes the system."""
Sentence = str | Callable[..., str]


VARIES = "…"
"""For a parameter that differs between diagnostics counted as one."""


class _Varying(str):
    """A parameter that differs: sentences treat it as a number and show it unchanged."""

    def __format__(self, form: str) -> str:
        return VARIES

    def __gt__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return False

    def _same(self, *others: object) -> _Varying:
        return self

    __abs__ = __mul__ = __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = _same


class CatalogueEntry(NamedTuple):
    """One code of a catalogue."""

    room: str
    severity: Severity
    sentence: Sentence


_ENTRIES: dict[str, CatalogueEntry] = {}


def register(room: str, catalogue: Mapping[Any, Mapping[str, Sentence]]) -> None:
    """Add the catalogue of a room; ValueError if another room has one of its codes."""
    for severity, sentences in catalogue.items():
        for code, sentence in sentences.items():
            if code in _ENTRIES and _ENTRIES[code].room != room:
                raise ValueError(f"the code '{code}' is in the catalogues of {_ENTRIES[code].room} and {room}")
            _ENTRIES[code] = CatalogueEntry(room, severity, sentence)


def catalogue() -> Mapping[str, CatalogueEntry]:
    """All codes."""
    return dict(_ENTRIES)


def is_code(text: str) -> bool:
    """Whether a text is a code of a catalogue; a diagnostic is none."""
    return type(text) is str and text in _ENTRIES


class Diagnostic(str):
    """A code with parameters; as a text, its sentence.

    Two are equal if their codes and parameters are; sentences are not compared.

    Args:
        code: of a catalogue. parameters: JSON values, or further diagnostics.

    Examples:
        >>> found = Diagnostic("clipped", samples=3)
        >>> found.as_dict(), str(found)
        ({'code': 'clipped', 'samples': 3}, '3 samples beyond full scale were cut')
    """

    code: str
    parameters: dict[str, Any]

    def __new__(cls, code: str, /, **parameters: Any) -> Diagnostic:
        """Make the diagnostic of a code; KeyError if no catalogue has it."""
        sentence, held = _ENTRIES[code].sentence, {name: _json(value) for name, value in parameters.items()}
        return cls._with(sentence(**held) if callable(sentence) else sentence.format(**held), code, held)

    @classmethod
    def _with(cls, sentence: str, code: str, parameters: dict[str, Any]) -> Diagnostic:
        instance = super().__new__(cls, sentence)
        instance.code, instance.parameters = code, parameters
        return instance

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Diagnostic):
            return self.code == other.code and self.parameters == other.parameters
        return str.__eq__(self, other) if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return read, (self.as_dict(),)

    def __str__(self) -> str:
        return str.__str__(self)

    def rename(self, old: str, new: str) -> Diagnostic:
        """The diagnostic with `new` in place of `old` in its texts."""
        changed = {n: v.replace(old, new) if isinstance(v, str) else v for n, v in self.as_dict().items()}
        return read({**changed, "code": self.code})

    @property
    def severity(self) -> Severity:
        """The severity of the code; `warning` for an unknown code."""
        entry = _ENTRIES.get(self.code)
        return entry.severity if entry else "warning"

    @property
    def parts(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of a `several`; else itself."""
        return tuple(self.parameters["notes"]) if self.code == "several" else (self,)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values: the code with its parameters."""
        return {"code": self.code, **{name: _plain(value) for name, value in self.parameters.items()}}


def _json(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Diagnostic):
        return value.as_dict()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read(held: Any) -> Diagnostic:
    """The diagnostic from `as_dict`, or ValueError; an unknown code is shown as it is."""
    if not isinstance(held, Mapping) or not isinstance(held.get("code"), str):
        raise ValueError(f"{str(held)[:80]!r} is no code with parameters")
    code = held["code"]
    parameters = {str(name): _read_parameter(value) for name, value in held.items() if name != "code"}
    try:
        return Diagnostic(code, **parameters)
    except (LookupError, ValueError, TypeError, AttributeError):
        listed = ", ".join(f"{name}={value}" for name, value in parameters.items())
        return Diagnostic._with(f"{code} ({listed})" if listed else code, code, parameters)


def _read_parameter(value: Any) -> Any:
    if isinstance(value, Mapping) and isinstance(value.get("code"), str):
        return read(value)
    if value == VARIES:
        return _Varying(value)
    return [_read_parameter(one) for one in value] if isinstance(value, list) else value


CODE = "_code"
"""Suffix of an entry's name for its code."""


def to_json(value: Any) -> Any:
    """JSON values; a diagnostic is its sentence `NAME` and its code `NAME_code`."""
    if isinstance(value, Diagnostic):
        return str(value)
    if isinstance(value, Mapping):
        coded = {f"{name}{CODE}": _codes(one) for name, one in value.items() if _has_codes(one)}
        return {name: to_json(one) for name, one in value.items()} | coded
    return [to_json(one) for one in value] if isinstance(value, list | tuple) else value


def _has_codes(value: Any) -> bool:
    listed = value if isinstance(value, list | tuple) else [value]
    return bool(listed) and all(isinstance(one, Diagnostic) for one in listed)


def _codes(value: Any) -> Any:
    return value.as_dict() if isinstance(value, Diagnostic) else [one.as_dict() for one in value]


def from_json(value: Any) -> Any:
    """The values from `to_json`, with sentences made from the codes."""
    if isinstance(value, Mapping):
        coded = {name.removesuffix(CODE): one for name, one in value.items() if str(name).endswith(CODE)}
        codes = {name: from_codes(one) for name, one in coded.items() if name in value}
        return {n: from_json(one) for n, one in value.items() if str(n).removesuffix(CODE) not in codes} | codes
    return [from_json(one) for one in value] if isinstance(value, list) else value


def to_codes(value: Any) -> Any:
    """JSON values with the codes of diagnostics, for a record."""
    if isinstance(value, Diagnostic):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {name: to_codes(one) for name, one in value.items()}
    return [to_codes(one) for one in value] if isinstance(value, list | tuple) else value


def from_codes(value: Any) -> Any:
    """The values from `to_codes`."""
    if isinstance(value, Mapping):
        if isinstance(value.get("code"), str):
            return read(value)
        return {name: from_codes(one) for name, one in value.items()}
    return [from_codes(one) for one in value] if isinstance(value, list) else value


@overload
def as_reason(text: str, code: str | None = None) -> Diagnostic: ...
@overload
def as_reason(text: str | None, code: str | None = None) -> Diagnostic | None: ...
def as_reason(text: str | None, code: str | None = None) -> Diagnostic | None:
    """A reason as a diagnostic; a plain text becomes an `error` (or `code`) with it."""
    if text is None or isinstance(text, Diagnostic):
        return text
    return Diagnostic(code, message=str(text)) if code else Diagnostic("error", type="", message=str(text))


def as_remark(text: str) -> Diagnostic:
    """A note or flag as a diagnostic; a foreign text becomes a `remark`."""
    return text if isinstance(text, Diagnostic) else Diagnostic("remark", message=str(text))


def of_error(error: BaseException, *, with_type: bool = True) -> Diagnostic:
    """The diagnostic that an exception carries, or one of its type and message."""
    carried = getattr(error, "message", None) or next(iter(error.args), None)
    if isinstance(carried, Diagnostic):
        return carried
    return Diagnostic("error", type=type(error).__name__ if with_type else "", message=" ".join(str(error).split()))


def in_common(diagnostics: Iterable[Diagnostic]) -> Diagnostic:
    """Diagnostics of one code as one; a parameter that differs is `VARIES`."""
    first, *others = diagnostics
    is_same = lambda name, value: all(one.parameters.get(name) == value for one in others)  # noqa: E731
    held = {n: _plain(v) if is_same(n, v) else VARIES for n, v in first.parameters.items()}
    return read({"code": first.code, **held})


def together(*notes: Diagnostic | None) -> Diagnostic | None:
    """Several diagnostics as one; None if there is none."""
    listed = [diagnostic for note in notes if note is not None for diagnostic in note.parts]
    return (listed[0] if len(listed) == 1 else Diagnostic("several", notes=listed)) if listed else None


for _info in iter_modules(__path__):
    if _info.name != "errors":
        register(_info.name, import_module(f"{__name__}.{_info.name}").SENTENCES)
