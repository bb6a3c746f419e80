"""What adapters of neural codecs share: the loops of encoding and decoding, full float32, and noise in place of weights."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np

from codec_bench.audio.passes import passes
from codec_bench.codecs.base import Codec, CodecInfo, check_input
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes, CodeStream

RANDOM = "random"
RANDOM_FULL = "random-full"


class NeuralCodec(Codec):
    """A codec of one stream of codes whose network codes several items in one pass.

    This class checks what comes in, groups the items into passes and cuts each item to its own length. An adapter says
    how many frames an item has (`_frames`) and what its network does with one pass (`_search`, `_waves`).

    Class attributes
        cardinality: entries of each codebook.

    Attributes that an adapter sets
        info: the codec's facts.
        _device: `cpu` or `cuda:N`.
        _codebooks: how many codebooks are sent.
    """

    cardinality: ClassVar[int]
    _device: str
    _codebooks: int = 1

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as the reference gives them for that item alone.

        Raises:
            UserError: a rate or channel count that the codec does not take, or no samples.
        """
        for audio in batch:
            check_input(audio, self.info)
        samples = [audio.num_samples for audio in batch]
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        with full_float32(self._device):
            for group in self._encoder_passes(samples):
                frames = [self._frames(samples[k]) for k in group]
                found = self._search([batch[k].samples for k in group], frames).cpu().numpy()
                for k, count, item in zip(group, frames, found):
                    values[k] = item[:, :count]
        return [one_stream(value, audio, self.info, self.cardinality) for value, audio in zip(values, batch)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes whose shape does not fit the item's length and this operating point, or out of range.
        """
        for item in codes:
            self._check(item)
        values = [item.streams[0].values.astype(np.int64, copy=False) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with full_float32(self._device):
            for group in self._decoder_passes([value.shape[1] for value in values]):
                frames = [values[k].shape[1] for k in group]
                found = self._waves(self._tensor(stack([values[k] for k in group], max(frames))), frames).cpu().numpy()
                for k, wave in zip(group, found):
                    waves[k] = self._cut(wave, codes[k])
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    @abstractmethod
    def _frames(self, num_samples: int) -> int:
        """Frames of an item of so many samples."""

    @abstractmethod
    def _search(self, samples: Sequence[np.ndarray], frames: Sequence[int]) -> Any:
        """The encoder and the search, over one pass.

        Args:
            samples: of each item, float32 `(1, samples)`.
            frames: of each item.

        Returns:
            A tensor of integers `(items, codebooks, frames of the longest item)`.
        """

    @abstractmethod
    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        """The lookup and the decoder, over one pass.

        Args:
            values: int64 tensor `(items, codebooks, frames of the longest item)`.
            frames: of each item.

        Returns:
            A tensor float32 `(items, 1, samples)`; what lies beyond an item means nothing.
        """

    def _encoder_passes(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        """Which items share a pass of the encoder, given their lengths in samples."""
        return passes(lengths, self._device)

    def _decoder_passes(self, frames: Sequence[int]) -> Iterable[list[int]]:
        """Which items share a pass of the decoder, given their lengths in frames."""
        return passes(frames, self._device)

    def _cut(self, wave: np.ndarray, item: Codes) -> np.ndarray:
        """What an item gets of its row of the decoder's result, `(1, item.num_samples)`."""
        return wave[:, : item.num_samples]

    def _check(self, item: Codes) -> None:
        """Refuses codes that this operating point does not have."""
        check_stream(item, self.info, (self._codebooks, self._frames(item.num_samples)), self.cardinality)

    def _tensor(self, values: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(values).to(self._device)


def weights_folder(name: str) -> str | None:
    """The folder on this machine that holds a checkpoint of the catalogue; None if it is not there."""
    from codec_bench.weights import lookup

    found = lookup(name)
    return str(found.folder) if found else None


def stack(items: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Arrays `(rows, columns)` as one `(batch, rows, length)`, zeros after each item's end."""
    out = np.zeros((len(items), items[0].shape[0], length), items[0].dtype)
    for row, item in zip(out, items):
        row[:, : item.shape[1]] = item
    return out


def equal_lengths(lengths: Sequence[int]) -> list[list[int]]:
    """The indices of the items, in groups of one length."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length].append(index)
    return list(groups.values())


def one_stream(values: np.ndarray, audio: Audio, info: CodecInfo, cardinality: int) -> Codes:
    """Codes of one stream at the codec's frame rate."""
    assert info.frame_rate_hz is not None, "a codec of codes has a frame rate"
    stream = CodeStream(np.ascontiguousarray(values, np.int64), cardinality, info.frame_rate_hz)
    return Codes((stream,), audio.num_samples, audio.sample_rate_hz)


def check_stream(item: Codes, info: CodecInfo, shape: tuple[int, int], cardinality: int) -> None:
    """Checks that codes are one stream of this shape, each code from 0 to `cardinality - 1`.

    Raises:
        UserError: they are not.
    """
    got = item.streams[0].values.shape if len(item.streams) == 1 else f"{len(item.streams)} streams"
    if got != shape:
        raise UserError(f"{info.name}: codes are {got}; {item.num_samples} samples have {shape}")
    values = item.streams[0].values
    if values.min() < 0 or values.max() >= cardinality:
        raise UserError(f"{info.name}: codes from {values.min()} to {values.max()}; expected 0 to {cardinality - 1}")


def check_codebooks(codec: str, codebooks: int | None, most: int, *, fewest: int = 1) -> int:
    """How many codebooks are used: the number asked for, or all for None.

    Raises:
        UserError: the codec does not have this number of codebooks.
    """
    if codebooks is None:
        return most
    if isinstance(codebooks, bool) or not isinstance(codebooks, int) or not fewest <= codebooks <= most:
        raise UserError(f"{codec} has no {codebooks!r} codebooks", hint=f"it has {fewest} to {most}")
    return codebooks


@contextmanager
def full_float32(device: str) -> Iterator[None]:
    """Turns off gradients, and TensorFloat-32: its rounding would make codes depend on the batch."""
    import torch

    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if str(device).startswith("cuda"):
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
            before = torch.backends.cuda.matmul.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = False
            stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", before)
        yield


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Seeds torch's random numbers, and restores the caller's generator afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        yield


def spread_codewords(codebooks: Iterable[Any], latents: Any) -> None:
    """Fills codebooks with noise that is spread about as widely as what each of them codes.

    Args:
        codebooks: tensors `(entries, dims)`, filled here.
        latents: `(frames, dims)`.
    """
    import torch

    residual = latents
    for embed in codebooks:
        embed.copy_(residual.mean(0) + 0.7 * residual.std(0) * torch.randn_like(embed))
        residual = residual - embed[torch.cdist(residual, embed).argmin(1)]


def fill_with_noise(net: Any) -> None:
    """Fills every convolution and linear layer with noise that keeps the power of a signal, and with small biases."""
    import torch
    from torch import nn

    for module in net.modules():
        if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d, nn.Linear)):
            taps: float = math.prod(module.weight.shape[1:])
            if isinstance(module, nn.ConvTranspose1d):
                taps = module.weight.shape[0] // module.groups * module.weight.shape[2] / module.stride[0]
            module.weight.copy_(torch.randn_like(module.weight) / math.sqrt(taps))
            if module.bias is not None:
                module.bias.normal_(0, 0.05)
