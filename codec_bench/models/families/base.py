"""What a family of models is: from requests to a network's inputs, and from its outputs to answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from codec_bench.models.families.settings import Settings
from codec_bench.types import Request, Response

Template = Literal["chat", "plain"]


@dataclass(frozen=True, slots=True)
class Loading:
    """What a family needs to load a checkpoint.

    Args:
        folder: of the checkpoint. model_type: as its configuration says. device, dtype: where and in what it computes.
        template: `chat` asks through the processor's chat template, `plain` writes the parts of the messages one behind
            the other, for models that were not trained to converse.
        system: what the system's turn says where a request has none, or None for what the template does.
        reasoning_end: what ends the thoughts of a model that thinks aloud; the answer is what follows.
        speaks: whether it is asked for sound. speaker: with whose voice. trust: whether code in the checkpoint may run.
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
    """One request as a network takes it.

    Args:
        inputs: tensors of a batch of one. group: only rows of one group may share a batch.
        wants: `text` or `audio`.
    """

    inputs: Mapping[str, Any]
    group: Hashable = ()
    wants: str = "text"


class Family:
    """One family of models; `load` before anything else.

    Attributes
        together: whether a batch is known to give the answers of one by one.
        rate_hz: of the audio it reads.
    """

    together: ClassVar[bool] = True
    rate_hz: int = 16_000

    def __init__(self, loading: Loading) -> None:
        self.loading = loading

    def load(self) -> None:
        """Loads network and processor.

        Raises:
            WeightsError: they do not fit each other. UserError: a package that they need is not installed.
        """
        raise NotImplementedError

    def prepare(self, request: Request) -> Row:
        """A request as the network takes it.

        Raises:
            UserError: it cannot be asked.
        """
        raise NotImplementedError

    def answer(self, rows: Sequence[Row], settings: Settings) -> list[Response]:
        """One response a row; the rows are of one group."""
        raise NotImplementedError


@dataclass(slots=True)
class OneByOne:
    """Calls an encoder once for each request, with what the request alone would give it, and joins the results.

    For encoders that hear the padding of a batch.

    Args:
        call: the encoder. join: makes one result of those of the requests.

    Attributes
        alone: arguments for each request of the batch, set before it is computed.
    """

    call: Callable[..., Any]
    join: Callable[[list[Any]], Any]
    alone: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """The result for the batch; its padded arguments are not looked at."""
        return self.join([self.call(**arguments) for arguments in self.alone])


@contextmanager
def drawing(settings: Settings, device: str) -> Iterator[None]:
    """Draws begin at the request's seed, and leave others' draws alone."""
    if not settings.sampled:
        yield
        return
    import torch

    with torch.random.fork_rng(devices=[] if device == "cpu" else [torch.device(device)]):
        torch.manual_seed(settings.seed)
        yield


def hearing(kind: type, **parts: Any) -> Any:
    """A processor without its parts for pictures: building those takes packages that sound does not need."""

    class Hearing(kind):
        def check_argument_for_proper_class(self, name: str, part: Any) -> type:
            """A part that is not there has the right class."""
            return type(None) if part is None else super().check_argument_for_proper_class(name, part)

    return Hearing(**parts)
