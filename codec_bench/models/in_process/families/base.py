"""The base class of model families: it turns requests into inputs of a network, and outputs of the network into answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from codec_bench.models.in_process.families.settings import Settings
from codec_bench.types import Request, Response

Template = Literal["chat", "plain"]


@dataclass(frozen=True, slots=True)
class Loading:
    """What a family needs to load a checkpoint.

    Args:
        folder: the folder of the checkpoint.
        model_type: the type of model that its configuration states.
        device, dtype: the device and the type that it computes in.
        template: `chat` asks through the chat template of the processor; `plain` joins the parts of the messages, for models
            that were not trained to converse.
        system: the text of the system's turn if a request has none; None leaves it to the template.
        reasoning_end: the text that ends the model's reasoning; the answer is the text after it.
        speaks: whether spoken answers are asked for. speaker: the voice of spoken answers.
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
class Row:
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

    def prepare(self, request: Request) -> Row:
        """Turns a request into inputs of the network.

        Raises:
            UserError: the model does not take this request.
        """
        raise NotImplementedError

    def answer(self, rows: Sequence[Row], settings: Settings) -> list[Response]:
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
def drawing(settings: Settings, device: str) -> Iterator[None]:
    """Within this context random numbers begin at the seed of the request. Random numbers outside it are not affected."""
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
        def check_argument_for_proper_class(self, name: str, part: Any) -> type:
            """The class of a part; a part that is None passes the check."""
            return type(None) if part is None else super().check_argument_for_proper_class(name, part)

    return Hearing(**parts)
