"""The base class of model families: it turns requests into inputs of a network, and outputs of the network into
answers.

`Settings` are the parameters of generation that all families know.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from codec_bench.errors import UserError
from codec_bench.types import Request, Response


@dataclass(frozen=True, slots=True)
class FamilySettings:
    """The parameters of one generation.

    Args:
        max_tokens, min_tokens: the most and the fewest new tokens.
        temperature: 0 takes the most probable token each time. A larger number draws tokens at random, one request at a
            time, beginning at `seed`.
        top_p, top_k: limit the tokens that are drawn from; 1 and 0 set no limit.
        repetition_penalty: 1 is no penalty.
        stop: the answer ends before the first of these texts.
        seed: where random numbers begin.
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
        """The parameters of a request; those that it does not give are taken from `defaults`.

        Raises:
            UserError: a parameter is unknown or has a wrong value.
        """
        base = defaults or cls()
        values = {field.name: getattr(base, field.name) for field in fields(cls)}
        for key, value in options.items():
            if key not in values:
                raise UserError(f"there is no generation parameter '{key}'", hint=f"known: {', '.join(values)}")
            if value is not None:
                values[key] = _checked(key, value)
        return cls(**values)

    @property
    def sampled(self) -> bool:
        """Whether tokens are drawn at random."""
        return self.temperature > 0


def one_limit(parameters: Mapping[str, Any], reasons: bool) -> dict[str, Any]:
    """A request's parameters with one limit: a model that reasons writes its reasoning and its answer in one go."""
    limits = dict(parameters)
    budget = limits.pop("reasoning_tokens", None) or 0
    if limits.get("max_tokens") is not None and reasons:
        limits["max_tokens"] += budget
    return limits


_INTEGERS = {"max_tokens": 1, "min_tokens": 0, "top_k": 0, "seed": None}


def _checked(key: str, value: Any) -> Any:
    if key == "stop":
        texts = (value,) if isinstance(value, str) else tuple(value)
        if not all(isinstance(text, str) and text for text in texts):
            raise UserError(f"stop={value!r} is not a text or a list of texts")
        return texts
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in _INTEGERS:
        least = _INTEGERS[key]
        if not number or int(value) != value or (least is not None and value < least):
            raise UserError(
                f"{key}={value!r} is not a whole number" + (f" of at least {least}" if least is not None else "")
            )
        return int(value)
    if (
        not number
        or value < 0
        or (key == "top_p" and not 0 < value <= 1)
        or (key == "repetition_penalty" and not value)
    ):
        raise UserError(f"{key}={value!r} is out of range")
    return float(value)


Template = Literal["chat", "plain"]


@dataclass(frozen=True, slots=True)
class Loading:
    """What a family needs to load a checkpoint.

    Args:
        folder: the folder of the checkpoint.
        model_type: the type of model that its configuration states.
        device, dtype: the device and the type that it computes in.
        template: `chat` asks through the chat template of the processor; `plain` joins the parts of the messages, for
            models that were not trained to converse.
        system: the text of the system's turn if a request has none; None leaves it to the template.
        reasoning_end: the text that ends the model's reasoning; the answer is the text after it.
        speaks: whether spoken answers are requested. speaker: the voice of spoken answers.
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
    """One request as inputs of a network.

    Args:
        inputs: tensors, as a batch of one.
        group: only rows with the same group may share a batch.
        wants: the kind of answer, `text` or `audio`.
    """

    inputs: Mapping[str, Any]
    group: Hashable = ()
    wants: str = "text"


class Family:
    """One family of models. `load` is called before any other method.

    Attributes
        together: whether it has been shown that answers do not depend on the batch.
        rate_hz: sample rate of the audio that the models read.
    """

    together: ClassVar[bool] = True
    rate_hz: int = 16_000

    def __init__(self, loading: Loading) -> None:
        self.loading = loading

    def load(self) -> None:
        """Loads network and processor.

        Raises:
            WeightsError: the weights do not fit the network.
            UserError: a package that they need is not installed.
        """
        raise NotImplementedError

    def prepare(self, request: Request) -> FamilyRow:
        """Turns a request into inputs of the network.

        Raises:
            UserError: the model does not take this request.
        """
        raise NotImplementedError

    def answer(self, rows: Sequence[FamilyRow], settings: FamilySettings) -> list[Response]:
        """One response per row, in order. The rows have the same group."""
        raise NotImplementedError


@dataclass(slots=True)
class OneByOne:
    """Calls an encoder once per request, with the arguments of that request alone, and joins the results.

    For encoders whose output depends on the padding of a batch.

    Args:
        call: the encoder.
        join: makes one result from the results of all requests.
        alone: the arguments for each request of the batch; set before each batch.
    """

    call: Callable[..., Any]
    join: Callable[[list[Any]], Any]
    alone: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """The result for the batch. The padded arguments are ignored."""
        return self.join([self.call(**arguments) for arguments in self.alone])


@contextmanager
def drawing(settings: FamilySettings, device: str) -> Iterator[None]:
    """Within this context random numbers begin at the seed of the request.

    Random numbers outside it are not affected.
    """
    if not settings.sampled:
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.device(device)]):
        torch.manual_seed(settings.seed)
        yield


def hearing(kind: type, **parts: Any) -> Any:
    """Builds a processor without its parts for images, because those need packages that sound does not need.

    Args:
        kind: the class of the processor.
        parts: the parts that it gets.
    """

    class Hearing(kind):
        def check_argument_for_proper_class(self, name: str, argument: Any) -> type:
            """The class of a part; a part that is None passes the check."""
            return type(None) if argument is None else super().check_argument_for_proper_class(name, argument)

    return Hearing(**parts)
