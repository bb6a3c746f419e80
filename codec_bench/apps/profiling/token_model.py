"""How many bits a small transformer needs for the codes of clips that it has not seen.

    fit(stream, steps=200, seed=0, alive=announce).bits_per_token

The protocol
    A decoder-only transformer of `LAYERS` layers, `WIDTH` channels and `HEADS` heads reads the codes of a stream one by
    one, all codebooks of a frame and then the next frame, over a context of at most `CONTEXT` codes in whole frames.
    Each codebook has embeddings and outputs of its own. It is trained for a stated number of steps of `BATCH` windows
    with Adam, a rate of `RATE` that falls to 0 as a cosine, and a seed. Clips are dealt out by a hash of their names:
    three fifths to learn from, one fifth to choose the step, one fifth to measure. Every `LOOK_EVERY` steps it is tried
    on the second part, and the best state counts, the beginning included. At the beginning all codes are equally
    likely, so white codes cost log2 K bits. What is measured is the cross-entropy of the third part. Of a window, the
    first half is only context, but for a clip's first window.

How to read it
    It is an upper bound: a larger model and more data need fewer bits. So compare it between codecs over the same data
    with the same steps, and not with other corpora. Lower is easier to model. Near log2 K, the data are too few for so
    small a model to learn anything, or there is nothing to learn. It is computed on one thread of the CPU. The same
    seed and versions give the same number.

References: T. M. Cover and J. A. Thomas, "Elements of Information Theory", section 5.4 (the excess of a model over the
entropy is its divergence from the source); A. Vaswani et al., "Attention is all you need", 2017.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.apps.profiling.token_corpus import TokenStream
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic

if TYPE_CHECKING:
    import torch

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, RATE = 2, 64, 4, 256, 4, 3e-3
LOOK_EVERY = 25
FEWEST_TOKENS = 1000
LARGEST_OUTPUT = 32_768
"""Codebooks times entries; the model would be little else than these."""
_PARTS = 5
_MOST_TRIED = 8_192
_MOST_MEASURED = 32_768


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a small transformer made of a stream.

    Args:
        bits_per_token: of the clips that were held out. uniform_bits: what equally likely codes would cost.
        best_step: at which it was chosen; 0 is before any training. steps: trained.
        parameters: of the model. trained_tokens, measured_tokens: codes that it learnt from, and of the clips that were
            held out.
    """

    bits_per_token: float
    uniform_bits: float
    best_step: int
    steps: int
    parameters: int
    trained_tokens: int
    measured_tokens: int


def protocol(steps: int, seed: int) -> dict[str, int | float]:
    """What the numbers rest on beside the data, as JSON values."""
    return {
        "layers": LAYERS, "width": WIDTH, "heads": HEADS, "context_tokens": CONTEXT, "windows_a_step": BATCH, "rate": RATE,
        "steps": steps, "look_every": LOOK_EVERY, "seed": seed,
    }  # fmt: skip


def fit(stream: TokenStream, *, steps: int, seed: int, alive: Callable[[], None] = lambda: None) -> Fitted:
    """Trains on some clips and measures on others.

    Args:
        stream: the codes. steps: of training. seed: decides weights and windows. alive: called at each step.

    Raises:
        NotApplicable: there are too few clips or codes, or more entries than so small a model is for.
    """
    import torch

    parts = _dealt(stream)
    _enough(stream, parts)
    # The random state of the codec's process is left as it is.
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(seed)
        model = _model(stream)
        best, state = _trained(model, parts, steps, np.random.default_rng(seed), alive)
        model.load_state_dict(state)
        bits, measured = _tried(model, parts[2], _MOST_MEASURED)
    return Fitted(
        bits, math.log2(stream.cardinality), best, steps, sum(p.numel() for p in model.parameters()),
        sum(array.size for array in parts[0]), measured,
    )  # fmt: skip


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread of torch: more gain nothing for so small a model, and the number would depend on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _dealt(stream: TokenStream) -> list[list[np.ndarray]]:
    """The clips to learn from, to choose by and to measure; codes int64 `(frames, codebooks)` of at least one frame
    each.
    """
    order = sorted({name for name, _ in stream.sequences}, key=lambda name: hashlib.sha256(name.encode()).digest())
    fold_of = {name: number % _PARTS for number, name in enumerate(order)}
    parts: list[list[np.ndarray]] = [[], [], []]
    for name, values in stream.sequences:
        if values.shape[1]:
            parts[max(0, fold_of[name] + 3 - _PARTS)].append(values.T.astype(np.int64))
    return parts


def _enough(stream: TokenStream, parts: list[list[np.ndarray]]) -> None:
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
    """The transformer, as a module that gives the bits of each code of windows `(windows, frames, codebooks)`."""
    import torch
    from torch import nn

    class Model(nn.Module):
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
            windows, frames, books = codes.shape
            numbered = (codes + self.entries * torch.arange(books)).reshape(windows, -1)
            start = torch.full((windows, 1), books * self.entries)
            read = self.embedding(torch.cat([start, numbered[:, :-1]], 1)) + self.position[: frames * books]
            mask = nn.Transformer.generate_square_subsequent_mask(frames * books)
            hidden = self.layers(read, mask=mask, is_causal=True).reshape(windows, frames, books, WIDTH)
            scores = torch.einsum("wfbc,bce->wfbe", hidden, self.outputs) + self.biases
            chosen = scores.log_softmax(-1).gather(-1, codes[..., None])[..., 0]
            return -chosen / math.log(2)

    return Model(stream.codebooks, stream.cardinality)


def _trained(
    model: Any, parts: list[list[np.ndarray]], steps: int, rng: np.random.Generator, alive: Callable[[], None]
) -> tuple[int, dict[str, Any]]:
    """The best step by the second part, and the state of the model there."""
    import torch

    optimiser = torch.optim.Adam(model.parameters(), RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps))
    best, least, state = 0, _tried(model, parts[1], _MOST_TRIED)[0], _copy(model)
    for step in range(1, steps + 1):
        alive()
        optimiser.zero_grad()
        windows = _draw_batch(parts[0], model.frames, rng)
        torch.stack([model(w).sum() for w in windows]).sum().div(sum(w.numel() for w in windows)).backward()
        optimiser.step()
        falling.step()
        if step % LOOK_EVERY == 0 or step == steps:
            bits = _tried(model, parts[1], _MOST_TRIED)[0]
            if bits < least:
                best, least, state = step, bits, _copy(model)
    return best, state


def _copy(model: Any) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def _draw_batch(clips: list[np.ndarray], frames: int, rng: np.random.Generator) -> list[torch.Tensor]:
    """Windows to learn from, those of one length together. Each code is as likely as any other to be in one."""
    import torch

    sizes = np.array([len(clip) for clip in clips], np.float64)
    by_frames: dict[int, list[np.ndarray]] = {}
    for clip in rng.choice(len(clips), BATCH, p=sizes / sizes.sum()):
        length = min(frames, len(clips[clip]))
        begin = int(rng.integers(len(clips[clip]) - length + 1))
        by_frames.setdefault(length, []).append(clips[clip][begin : begin + length])
    return [torch.from_numpy(np.stack(windows)) for windows in by_frames.values()]


def _tried(model: Any, clips: list[np.ndarray], most: int) -> tuple[float, int]:
    """The mean bits of the codes of clips, of the first `most` of them, and how many they are."""
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
    """Windows of clips that hold each frame once, with the number of frames in front that are only context."""
    step = max(1, frames // 2)
    for clip in clips:
        yield clip[:frames], 0
        for end in range(frames, len(clip), step):
            stop = min(len(clip), end + step)
            yield clip[max(0, stop - frames) : stop], min(frames, stop) - (stop - end)
