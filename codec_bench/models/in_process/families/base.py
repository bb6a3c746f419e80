"""The base of model families: requests to network inputs, outputs to responses."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from codec_bench.messages.errors import UserError
from codec_bench.types import Request, Response


@dataclass(frozen=True, slots=True)
class FamilySettings:
    """The parameters of one generation.

    Args:
        max_tokens, min_tokens: the most and the fewest new tokens.
        temperature: 0 is greedy. A larger number samples, one request at a time, from `seed`.
        top_p, top_k: restrict sampling; 1 and 0 do not.
        repetition_penalty: 1 is no penalty.
        stop: the answer ends before the first of these texts.
    """

    max_tokens: int = 256
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0

    @classmethod
    def parse(cls, options: Mapping[str, Any], defaults: FamilySettings | None = None) -> FamilySettings:
        """Parse and check a request's generation parameters; UserError for a wrong one.

        Missing ones, and those that are None, come from `defaults`.
        """
        base = defaults or cls()
        values = {field.name: getattr(base, field.name) for field in fields(cls)}
        for key, value in options.items():
            if key not in values:
                raise UserError("generation_unknown", option=key, hint=f"known: {', '.join(values)}")
            if value is not None:
                values[key] = _checked(key, value)
        return cls(**values)

    @property
    def sampled(self) -> bool:
        """Whether tokens are sampled."""
        return self.temperature > 0


def one_limit(parameters: Mapping[str, Any], reasons: bool) -> dict[str, Any]:
    """Return parameters with the limit of reasoning added to `max_tokens`.

    It is dropped if the model does not reason.
    """
    limits = dict(parameters)
    budget = limits.pop("reasoning_tokens", None) or 0
    if limits.get("max_tokens") is not None and reasons:
        limits["max_tokens"] += budget
    return limits


_INTEGERS = {"max_tokens": 1, "min_tokens": 0, "top_k": 0, "seed": None}


def _checked(key: str, value: Any) -> Any:
    """Return a generation option as its type; UserError if it is out of range."""
    if key == "stop":
        texts = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(text, str) and text for text in texts):
            raise UserError("stop_form", value=value)
        return texts
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in _INTEGERS:
        least = _INTEGERS[key]
        if not number or int(value) != value or (least is not None and value < least):
            bound = f" of at least {least}" if least is not None else ""
            raise UserError("generation_not_whole", option=key, value=value, bound=bound)
        return int(value)
    most = 1 if key == "top_p" else math.inf
    if not number or not 0 <= value <= most or (key in ("top_p", "repetition_penalty") and not value):
        raise UserError("generation_out_of_range", option=key, value=value)
    return float(value)


Template = Literal["chat", "plain"]


@dataclass(frozen=True, slots=True)
class Loading:
    """Options of loading a checkpoint.

    Args:
        model_type: the type of model in its configuration.
        template: `chat` uses the processor's chat template; `plain` joins the parts of the messages, for base models.
        system: the system text of a request without one; None leaves it to the template.
        reasoning_end: the text that ends the model's reasoning; the answer follows it.
        speaks: whether spoken answers are requested.
        trust: whether code in the checkpoint may run.
    """

    folder: Path
    model_type: str
    device: str = "cpu"
    dtype: str = "float32"
    template: Template = "chat"
    system: str | None = None
    reasoning_end: str | None = None
    speaks: bool = False
    speaker: str | None = None
    trust: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class FamilyRow:
    """One request as network inputs. Only rows of one group share a batch."""

    inputs: Mapping[str, Any]
    group: Hashable = ()
    wants: str = "text"


class Family:
    """One family of models. `load` is called before any other method.

    Attributes
        together: whether answers are known not to depend on the batch.
        rate_hz: sample rate of the audio that the models read.
    """

    together: ClassVar[bool] = True
    rate_hz: int = 16_000

    def __init__(self, loading: Loading) -> None:
        self.loading = loading

    def load(self) -> None:
        """Load network and processor.

        Raises:
            WeightsError: the weights do not fit the network.
            UserError: a required package is not installed.
        """
        raise NotImplementedError

    def prepare(self, request: Request) -> FamilyRow:
        """Turn a request into inputs of the network.

        Raises:
            UserError: the model does not take this request.
        """
        raise NotImplementedError

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """Return one response per row, in order. The rows have the same group."""
        raise NotImplementedError


@dataclass(slots=True)
class OneByOne:
    """Calls an encoder, whose output depends on padding, once per request."""

    call: Callable[..., Any]
    join: Callable[[list[Any]], Any]
    alone: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Return the result for the batch. The padded arguments are ignored."""
        return self.join([self.call(**arguments) for arguments in self.alone])


@contextmanager
def seeded(settings: FamilySettings, device: str) -> Iterator[None]:
    """Seed torch within the context by the settings; the state outside stays."""
    if not settings.sampled:
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.device(device)]):
        torch.manual_seed(settings.seed)
        yield


def hearing(kind: type, **parts: Any) -> Any:
    """Build a processor without its image parts, which need further packages."""

    class Hearing(kind):
        def check_argument_for_proper_class(self, name: str, argument: Any) -> type:
            """The class of a part; a part that is None passes the check."""
            return type(None) if argument is None else super().check_argument_for_proper_class(name, argument)

    return Hearing(**parts)
