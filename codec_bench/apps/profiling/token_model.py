"""Bits that a small transformer needs for the codes of held-out clips.

A decoder of `LAYERS` layers, `WIDTH` channels and `HEADS` heads reads codes frame by frame, codebook by codebook, over
at most `CONTEXT` codes in whole frames. It is trained with Adam by steps of `BATCH` windows at `RATE` with cosine
decay. Clips are split by a hash of their names: 3/5 to train, 1/5 to choose the step every `LOOK_EVERY` (the untrained
state included), 1/5 to measure. The first half of a window is context only, except in a clip's first window.
The result is an upper bound: compare codecs over the same data and steps. White codes cost log2 K bits, as does too
little data. It runs on one CPU thread, reproducibly by seed and versions.
References: Cover and Thomas, "Elements of Information Theory", 5.4; A. Vaswani et al., 2017.

The codes of a corpus as sequences over time.
Streams with a frame rate are sequences; codes sent once a clip are separate. At most `MOST_CODES` codes are held, from
the first clips; `excluded` counts the items beyond.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic
from codec_bench.types import Sent

if TYPE_CHECKING:
    import torch

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, RATE = 2, 64, 4, 256, 4, 3e-3
LOOK_EVERY = 25
FEWEST_TOKENS = 1000
LARGEST_OUTPUT = 32_768
"""Codebooks times entries; a larger output would dwarf the model."""
_PARTS = 5
_MOST_TRIED = 8_192
_MOST_MEASURED = 32_768
MOST_CODES = 4_000_000
TIMELESS = Diagnostic("no_frame_rate")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A small transformer fitted to a stream.

    Args:
        bits_per_token: of held-out clips.
        uniform_bits: of equally likely codes.
        best_step: the chosen step; 0 is untrained.
        trained_tokens, measured_tokens: codes for training, and of held-out clips.
    """

    bits_per_token: float
    uniform_bits: float
    best_step: int
    steps: int
    parameters: int
    trained_tokens: int
    measured_tokens: int


def protocol(steps: int, seed: int) -> dict[str, int | float]:
    """Return the settings behind the numbers, as JSON values."""
    return {
        "layers": LAYERS, "width": WIDTH, "heads": HEADS, "context_tokens": CONTEXT, "windows_a_step": BATCH,
        "rate": RATE, "steps": steps, "look_every": LOOK_EVERY, "seed": seed,
    }  # fmt: skip


def fit(stream: TokenStream, *, steps: int, seed: int, alive: Callable[[], None] = lambda: None) -> Fitted:
    """Train a small transformer on some clips' codes, and measure bits on others.

    Args:
        steps: of training.
        seed: of weights and batches.
        alive: called repeatedly, as a sign of life.

    Raises:
        NotApplicable: there are too few clips or codes, or more entries than so small a model supports.
    """
    import torch

    parts = _split_clips(stream)
    _enough(stream, parts)
    # Preserve the random state of the codec's process.
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(seed)
        model = _model(stream)
        best, state = _trained(model, parts, steps, np.random.default_rng(seed), alive)
        model.load_state_dict(state)
        bits, measured = _measure_bits(model, parts[2], _MOST_MEASURED)
    return Fitted(
        bits, math.log2(stream.cardinality), best, steps, sum(p.numel() for p in model.parameters()),
        sum(array.size for array in parts[0]), measured,
    )  # fmt: skip


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit torch to one thread: more gain nothing, and would change the result."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _split_clips(stream: TokenStream) -> list[list[np.ndarray]]:
    """Split clips into training, validation and test, int64 `(frames, codebooks)`."""
    order = sorted({name for name, _ in stream.sequences}, key=lambda name: hashlib.sha256(name.encode()).digest())
    fold_of = {name: number % _PARTS for number, name in enumerate(order)}
    parts: list[list[np.ndarray]] = [[], [], []]
    for name, values in stream.sequences:
        if values.shape[1]:
            parts[max(0, fold_of[name] + 3 - _PARTS)].append(values.T.astype(np.int64))
    return parts


def _enough(stream: TokenStream, parts: list[list[np.ndarray]]) -> None:
    """Raise NotApplicable if there are too many entries, too few clips or few codes.

    Args:
        parts: training, validation and test clips.
    """
    if stream.codebooks * stream.cardinality > LARGEST_OUTPUT:
        raise NotApplicable(
            Diagnostic(
                "too_many_entries",
                codebooks=stream.codebooks,
                entries=stream.cardinality,
                width=WIDTH,
                most=LARGEST_OUTPUT,
            )
        )
    if not all(parts):
        raise NotApplicable(Diagnostic("too_few_clips", clips=_PARTS))
    learnt = sum(array.size for array in parts[0])
    if learnt < FEWEST_TOKENS:
        raise NotApplicable(Diagnostic("too_few_codes", codes=learnt, needed=FEWEST_TOKENS))


def _model(stream: TokenStream) -> Any:
    """Build a transformer from codes `(windows, frames, codebooks)` to their bits."""
    import torch
    from torch import nn

    class TokenTransformer(nn.Module):
        def __init__(self, books: int, entries: int) -> None:
            super().__init__()
            self.books, self.frames = books, max(1, CONTEXT // books)
            self.embedding = nn.Embedding(books * entries + 1, WIDTH)
            self.position = nn.Parameter(0.02 * torch.randn(self.frames * books, WIDTH))
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
            self.layers = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
            self.outputs = nn.Parameter(torch.zeros(books, WIDTH, entries))
            self.biases = nn.Parameter(torch.zeros(books, entries))
            self.entries = entries

        def forward(self, codes: torch.Tensor) -> torch.Tensor:
            """Return the bits of each code given those before it, in the shape of `codes`."""
            windows, frames, books = codes.shape
            numbered = (codes + self.entries * torch.arange(books)).reshape(windows, -1)
            start = torch.full((windows, 1), books * self.entries)
            read = self.embedding(torch.cat([start, numbered[:, :-1]], 1)) + self.position[: frames * books]
            mask = nn.Transformer.generate_square_subsequent_mask(frames * books)
            hidden = self.layers(read, mask=mask, is_causal=True).reshape(windows, frames, books, WIDTH)
            scores = torch.einsum("wfbc,bce->wfbe", hidden, self.outputs) + self.biases
            chosen = scores.log_softmax(-1).gather(-1, codes[..., None])[..., 0]
            return -chosen / math.log(2)

    return TokenTransformer(stream.codebooks, stream.cardinality)


def _trained(
    model: Any, parts: list[list[np.ndarray]], steps: int, rng: np.random.Generator, alive: Callable[[], None]
) -> tuple[int, dict[str, Any]]:
    """Train a model; return the step of least validation loss, and its state dict.

    Args:
        parts: training, validation and test clips.
    """
    import torch

    optimiser = torch.optim.Adam(model.parameters(), RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps))
    best, least, state = 0, _measure_bits(model, parts[1], _MOST_TRIED)[0], _copy(model)
    for step in range(1, steps + 1):
        alive()
        optimiser.zero_grad()
        windows = _draw_batch(parts[0], model.frames, rng)
        torch.stack([model(w).sum() for w in windows]).sum().div(sum(w.numel() for w in windows)).backward()
        optimiser.step()
        falling.step()
        if step % LOOK_EVERY == 0 or step == steps:
            bits = _measure_bits(model, parts[1], _MOST_TRIED)[0]
            if bits < least:
                best, least, state = step, bits, _copy(model)
    return best, state


def _copy(model: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def _draw_batch(clips: list[np.ndarray], frames: int, rng: np.random.Generator) -> list[torch.Tensor]:
    """Draw random windows of up to `frames`, stacked by length, from codes uniformly."""
    import torch

    sizes = np.array([len(clip) for clip in clips], np.float64)
    by_frames: dict[int, list[np.ndarray]] = {}
    for clip in rng.choice(len(clips), BATCH, p=sizes / sizes.sum()):
        length = min(frames, len(clips[clip]))
        begin = int(rng.integers(len(clips[clip]) - length + 1))
        by_frames.setdefault(length, []).append(clips[clip][begin : begin + length])
    return [torch.from_numpy(np.stack(windows)) for windows in by_frames.values()]


def _measure_bits(model: Any, clips: list[np.ndarray], most: int) -> tuple[float, int]:
    """Return the mean bits of `most` codes or slightly more, and how many they were."""
    import torch

    total, count = 0.0, 0
    with torch.inference_mode():
        for window, known in _windows(clips, model.frames):
            bits = model(torch.from_numpy(window[None]))[0, known:]
            total, count = total + float(bits.sum()), count + bits.numel()
            if count >= most:
                break
    return total / count, count


def _windows(clips: list[np.ndarray], frames: int) -> Iterator[tuple[np.ndarray, int]]:
    """Yield windows with the number of leading context frames."""
    step = max(1, frames // 2)
    for clip in clips:
        yield clip[:frames], 0
        for end in range(frames, len(clip), step):
            stop = min(len(clip), end + step)
            yield clip[max(0, stop - frames) : stop], min(frames, stop) - (stop - end)


@dataclass(slots=True, eq=False)
class TokenStream:
    """The codes of one stream: int32 `(codebooks, frames)` with clip ids."""

    name: str
    codebooks: int
    cardinality: int
    frame_rate_hz: float
    sequences: list[tuple[str, np.ndarray]] = field(default_factory=list)

    @property
    def tokens_per_s(self) -> float:
        """Codes per second of audio, over all codebooks."""
        return self.codebooks * self.frame_rate_hz

    @property
    def frames(self) -> int:
        """Frames of all sequences."""
        return sum(values.shape[1] for _, values in self.sequences)


class TokenCorpus:
    """Collects the codes of a corpus, stream by stream.

    Attributes:
        once: (codes, cardinality) of codes sent once a clip, by id.
        items, excluded: how many are held, and how many are not.
    """

    def __init__(self) -> None:
        self._streams: list[TokenStream] = []
        self.seconds: dict[str, float] = {}
        self.once: dict[str, list[tuple[np.ndarray, int]]] = {}
        self._stored = self.items = self.excluded = 0

    def add(self, name: str, codes: Sent) -> None:
        """Add the codes of a sample or one of its channels; excluded once memory is full."""
        streams = [stream for stream in codes.streams if stream.frame_rate_hz]
        if not self._streams:
            self._streams = [
                TokenStream(s.name, s.values.shape[0], s.cardinality, float(s.frame_rate_hz)) for s in streams
            ]
        if self._stored > MOST_CODES:
            self.excluded += 1
            return
        self.items += 1
        if name not in self.once:  # of the first channel
            self.once[name] = [(np.asarray(s.values), s.cardinality) for s in codes.streams if not s.frame_rate_hz]
        self.seconds[name] = codes.duration_s
        for buffer, stream in zip(self._streams, streams, strict=True):
            values = np.asarray(stream.values).astype(np.int32)
            buffer.sequences.append((name, values))
            self._stored += values.size

    @property
    def streams(self) -> list[TokenStream]:
        """The streams that have codes over time; raises NotApplicable without any."""
        if not any(stream.frames for stream in self._streams):
            raise NotApplicable(TIMELESS)
        return self._streams
