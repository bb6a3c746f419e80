"""Bases of neural codecs: ragged batches, checks of codes, float32."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from codec_bench.audio.padded_passes import passes
from codec_bench.codecs.base import Codec, CodecInfo, PublishedWeights, check_input
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL
from codec_bench.messages.errors import UserError
from codec_bench.networks.batch_shapes import in_shape
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Codes, CodeStream


class PublishedCodec(Codec):
    """A codec whose networks have published weights.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a file or folder in the codec's layout or a hub id, optionally `@REVISION`; None for the published
            weights on this machine. For tests and benches: `random` for small networks of seeded noise, and of most
            codecs `random-full` for those of the published size.

    Raises:
        WeightsError: the weights are not on this machine, or belong to another model.

    Class attributes
        checkpoints: names of the weights in the catalogue; `{option}` is replaced by an option of the class.
        residual: whether codebooks are residual, so the first ones can be decoded alone.

    Attributes that an adapter sets
        _device: `cpu` or `cuda:N`.
        _quantiser: its codebooks in the form of `kernels/rvq`, or None.
        _codebooks: how many of them are sent.
    """

    checkpoints: ClassVar[tuple[str, ...]]
    residual: ClassVar[bool] = False
    _device: str
    _quantiser: Any = None
    _codebooks: int = 1

    @classmethod
    def find_weights(cls, **options: Any) -> str | None:
        """Find the folder of the published weights on this machine; None if incomplete."""
        from codec_bench.weights import lookup

        checkpoints = [lookup(name.format(**options)) for name in cls.checkpoints]
        return str(checkpoints[0].folder) if checkpoints[0] and all(checkpoints) else None

    @classmethod
    def published(cls, **options: Any) -> PublishedWeights:
        """Return the revision and size of the codec's weights, as the catalogue has them.

        Args:
            options: the codec's options, which may select the weights.
        """
        from codec_bench.weights import checkpoint

        held = [checkpoint(name.format(**options)) for name in cls.checkpoints]
        revisions, sizes = [one.revision for one in held], [one.size for one in held]
        return PublishedWeights(
            ", ".join(map(str, revisions)) if all(revisions) else None,
            sum(size or 0 for size in sizes) if all(sizes) else None,
        )

    @classmethod
    def require_weights(cls, weights: str | None, **options: Any) -> None:
        """Raise WeightsError unless the published or named weights are on this machine."""
        from codec_bench.weights import find_all

        if weights not in (RANDOM, RANDOM_FULL):
            find_all((name.format(**options) for name in cls.checkpoints), weights)

    def vectors(self, values: np.ndarray) -> np.ndarray:
        """Look up the vectors of codes `(codebooks, frames)`, summed over codebooks.

        Returns float32 `(frames, dimensions)`.
        """
        if self._quantiser is None:
            return super().vectors(values)
        from codec_bench.kernels.rvq.dispatch import lookup
        from codec_bench.networks.transfer import sent

        with computing(self._device, "float32"):
            (there,) = sent([np.ascontiguousarray(values, np.int64)[None]], self._device)
            return lookup(there, self._quantiser).value[0].T.float().cpu().numpy()

    def first(self, codebooks: int) -> PublishedCodec:
        """Return a copy that sends only the first codebooks, at the lower bitrate.

        Args:
            codebooks: how many.

        Raises:
            UserError: the codebooks are not residual, or the codec does not have so many.
        """
        if not self.residual:
            raise UserError("fewer_codebooks_unsupported", codec=self.info.name)
        fewer = copy(self)
        fewer._codebooks = check_codebooks(self.info.name, codebooks, self._codebooks)
        share = codebooks / self._codebooks
        bps, per_s = (
            None if rate is None else rate * share for rate in (self.info.nominal_bitrate_bps, self.info.tokens_per_s)
        )
        fewer.info = replace(self.info, nominal_bitrate_bps=bps, tokens_per_s=per_s)
        return fewer

    def _in_shape(
        self, forward: Callable[..., Any], moving: Sequence[Any], frames: Sequence[int], still: Sequence[Any] = ()
    ) -> Any:
        """Run the decoder, on a GPU padded to few shapes (`networks/batch_shapes.py`).

        Args:
            moving: tensors with a time axis.
            frames: of each item.
            still: tensors without a time axis.
        """
        return in_shape(forward, moving, frames, still, steps_per_s=self.info.frame_rate_hz or 1.0)

    def _in_shape_of_waves(
        self, forward: Callable[..., Any], waves: Any, samples: Sequence[int], unit: int, still: Sequence[Any] = ()
    ) -> Any:
        """Run the encoder as `_in_shape` does, padded to a multiple of `unit` samples."""
        return in_shape(forward, [waves], samples, still, steps_per_s=self.info.sample_rates_hz[0], unit=unit)

    def _nearest(self, latents: Any) -> Any:
        """Quantise latents `(items, channels, frames)` to `(items, codebooks, frames)`."""
        from codec_bench.kernels.rvq.dispatch import search

        return search(latents, self._quantiser, self._codebooks).value

    def _lookup(self, values: Any) -> Any:
        """Look up codes `(items, codebooks, frames)`: latents `(items, channels, frames)`."""
        from codec_bench.kernels.rvq.dispatch import lookup

        return lookup(values, self._quantiser).value


class NeuralCodec(PublishedCodec):
    """A codec of one stream of codes whose network codes several items in one pass.

    This class checks the input, groups items into passes and cuts each item to its length. On a GPU, all passes are
    sent together and fetched together. An adapter overrides what differs: frames of an item (`_frames`), its encoder's
    samples (`_input_samples`), inputs (`_inputs`), and the computation of a pass (`_search`, `_waves`).

    Class attributes:
        cardinality: entries of each codebook.

    An adapter sets these attributes, all but `_codebooks` with `_install` where it has one network:
        info: the codec's facts.
        _net: the network, in eval mode.
        _hop: samples of a frame.
    """

    cardinality: ClassVar[int]
    _net: Any
    _hop: int

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item; its codes do not depend on the rest of the batch."""
        for audio in batch:
            check_input(audio, self.info)
        input_samples = [self._input_samples(audio.num_samples) for audio in batch]
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        with computing(self._device, "float32"):
            for groups in self._sent_together(self._encoder_passes(input_samples)):
                lengths = [[input_samples[k] for k in group] for group in groups]
                inputs = [self._inputs([batch[k].samples for k in g], counts) for g, counts in zip(groups, lengths)]
                outputs = self._computed(inputs, [partial(self._encoded, samples=counts) for counts in lengths])
                for group, items in zip(groups, outputs):
                    for k, item in zip(group, items):
                        values[k] = item[:, : self._frames(batch[k].num_samples)]
        return [self._to_codes(value, audio) for value, audio in zip(values, batch)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item, and cut it to its length."""
        for item in codes:
            self._check(item)
        values = [self._values(item) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with computing(self._device, "float32"):
            for groups in self._sent_together(self._decoder_passes([value.shape[1] for value in values])):
                frames = [[values[k].shape[1] for k in group] for group in groups]
                inputs = [(stack([values[k] for k in g], max(counts)),) for g, counts in zip(groups, frames)]
                outputs = self._computed(inputs, [partial(self._decoded, frames=counts) for counts in frames])
                for group, items in zip(groups, outputs):
                    for k, wave in zip(group, items):
                        waves[k] = self._cut(wave, codes[k])
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _to_codes(self, values: np.ndarray, audio: Audio) -> Any:
        """Wrap the codes `(codebooks, frames)` of an item."""
        return one_stream(values, audio, self.info, self.cardinality)

    def _values(self, item: Any) -> np.ndarray:
        """Return an item's codes as the decoder's input."""
        return item.streams[0].values.astype(np.int64, copy=False)

    def _frames(self, num_samples: int) -> int:
        """Count the frames of an item; here, the last one may be padded."""
        return -(-num_samples // self._hop)

    def _input_samples(self, num_samples: int) -> int:
        """Count the samples of an item that its encoder reads; here, all."""
        return num_samples

    def _sent_together(self, groups: Iterable[list[int]]) -> list[list[list[int]]]:
        """Group passes whose inputs go to the device together: all on a GPU, one on a CPU."""
        passes = list(groups)
        return [[group] for group in passes] if self._device == "cpu" else [passes] if passes else []

    def _encoded(self, inputs: Sequence[Any], samples: Sequence[int]) -> Any:
        """Run `_search` on one pass, on a GPU padded to a few shapes."""
        return self._in_shape_of_waves(self._search, inputs[0], samples, self._hop)

    def _decoded(self, inputs: Sequence[Any], frames: Sequence[int]) -> Any:
        """Run `_waves` on one pass, on a GPU padded to a few shapes."""
        return self._in_shape(self._waves, inputs, frames)

    def _computed(
        self, inputs: Sequence[Sequence[np.ndarray]], runs: Sequence[Callable[[list[Any]], Any]]
    ) -> list[np.ndarray]:
        """Copy the arrays of all passes to the device, run the passes, copy results back.

        Args:
            inputs: the arrays of each pass.
            runs: for each pass, a function of its tensors on the device.
        """
        from codec_bench.networks.transfer import fetched, sent

        there = iter(sent([array for arrays in inputs for array in arrays], self._device))
        return fetched([run([*islice(there, len(arrays))]) for run, arrays in zip(runs, inputs, strict=True)])

    def _inputs(self, waves: Sequence[np.ndarray], samples: Sequence[int]) -> Sequence[np.ndarray]:
        """Build the inputs of one encoder pass; here, zero-padded float32 waves."""
        return (stack(waves, max(samples)),)

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        """Encode and quantise one pass.

        Args:
            waves: float32 tensor `(items, 1, samples of the longest item)`, zero after each item's end.
            samples: how many the encoder reads of each item.

        Returns:
            An integer tensor `(items, codebooks, frames of the longest item)`.
        """
        return self._nearest(self._net.encoder(waves, samples))

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        """Decode one pass of codes.

        Args:
            values: int64 tensor `(items, codebooks, frames of the longest item)`.
            frames: of each item.

        Returns:
            A float32 tensor `(items, 1, samples)`; samples beyond an item are undefined.
        """
        return self._net.decoder(self._lookup(values), frames)

    def _encoder_passes(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        """Group items into encoder passes by their sample counts."""
        return passes(lengths, self._device)

    def _decoder_passes(self, frames: Sequence[int]) -> Iterable[list[int]]:
        """Group items into decoder passes by their frame counts."""
        return passes(frames, self._device)

    def _install(self, info: CodecInfo, device: str, net: Any, used: str) -> None:
        """Move a network to the device in eval mode, and read its quantiser.

        Args:
            info: the facts of the operating point.
            used: which weights the network has (repository and revision), for `info.weights`.
        """
        from codec_bench.networks.convolutions import on_tensor_cores

        self._device = device
        self._net = on_tensor_cores(net.eval().to(device))
        self._quantiser = self._read_quantiser(self._net)
        self.info = replace(info, weights=used)

    def _read_quantiser(self, net: Any) -> Any:
        """Read the codebooks of a network; here, of a transformers model."""
        from codec_bench.kernels.rvq.dispatch import adopt

        return adopt(net.quantizer)

    def _cut(self, wave: np.ndarray, item: Codes) -> np.ndarray:
        """Cut an item's row of the decoder's result to `(1, item.num_samples)`."""
        return wave[:, : item.num_samples]

    def _check(self, item: Codes) -> None:
        """Refuse codes that this operating point does not have."""
        check_stream(item, self.info, (self._codebooks, self._frames(item.num_samples)), self.cardinality)


def of_transformers(
    weights: str | None, checkpoint: str, model: str, facts: dict[str, Any], random_net: Callable[..., Any]
) -> tuple[Any, str]:
    """Load a transformers network on the CPU; also return which weights it has.

    Args:
        weights: as for `PublishedCodec`.
        checkpoint: the name of its weights in the catalogue.
        model: the name of the class in transformers.
        facts: required values of the checkpoint's configuration.
        random_net: builds a network of noise; with `reduced=True` a small one.

    Returns:
        The network, and the name of its weights for records: repository and revision, or the SHA-256.

    Raises:
        WeightsError: the weights are not on this machine, or belong to another model.
    """
    from codec_bench.weights import find
    from codec_bench.weights.pretrained import class_of, load_pretrained

    if weights in (RANDOM, RANDOM_FULL):
        return random_net(reduced=weights == RANDOM), weights
    stored = find(checkpoint, weights)
    return load_pretrained(class_of(model), str(stored.folder), facts), stored.used


def stack(items: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Stack arrays `(rows, columns)` to `(batch, rows, length)`, zero-padded."""
    out = np.zeros((len(items), items[0].shape[0], length), items[0].dtype)
    for row, item in zip(out, items):
        row[:, : item.shape[1]] = item
    return out


def group_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Group the indices of items of equal length."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length].append(index)
    return list(groups.values())


def one_stream(values: np.ndarray, audio: Audio, info: CodecInfo, cardinality: int) -> Codes:
    """Wrap codes `(codebooks, frames)` as one stream at the codec's frame rate."""
    assert info.frame_rate_hz is not None, "a codec of codes has a frame rate"
    stream = CodeStream(np.ascontiguousarray(values, np.int64), cardinality, info.frame_rate_hz)
    return Codes((stream,), audio.num_samples, audio.sample_rate_hz)


def code_info(
    name: str, rate_hz: int, hop: int, cardinality: int, codebooks: int = 1, *, causal: bool = False, **facts: Any
) -> CodecInfo:
    """Return the facts of a codec with one stream and a frame every `hop` samples.

    Frame rate, bitrate and tokens per second follow from the arguments.

    Args:
        cardinality: how many codes each codebook has.
        facts: further fields of `CodecInfo`.
    """
    frame_rate_hz = rate_hz / hop
    bits = math.log2(cardinality)
    return CodecInfo(
        name, (rate_hz,), frame_rate_hz=frame_rate_hz, nominal_bitrate_bps=codebooks * frame_rate_hz * bits,
        tokens_per_s=codebooks * frame_rate_hz, causal=causal, **facts,
    )  # fmt: skip


def check_stream(item: Codes, info: CodecInfo, shape: tuple[int, int], cardinality: int) -> None:
    """Check that an item has one stream of codes of this shape and range.

    Args:
        shape: `(codebooks, frames)`.
        cardinality: codes must be below it.

    Raises:
        UserError: the shape or a code is another one.
    """
    check_streams(item, info, [shape], [cardinality])


def check_streams(
    item: Codes, info: CodecInfo, shapes: Sequence[tuple[int, int]], cardinalities: Sequence[int]
) -> None:
    """Check that an item's streams have these shapes and codes within range.

    Args:
        shapes: `(codebooks, frames)` of each stream.
        cardinalities: of each stream; its codes must be below.

    Raises:
        UserError: a shape differs, or a code is out of range.
    """
    got = [stream.values.shape for stream in item.streams]
    if got != list(shapes):
        held, expected = (" and ".join(map(str, one)) for one in (got, shapes))
        held = held if len(got) == len(shapes) else f"{len(got)} streams"
        raise UserError("codes_unexpected", codec=info.name, shapes=held, samples=item.num_samples, expected=expected)
    for stream, cardinality in zip(item.streams, cardinalities):
        low, high = stream.values.min(), stream.values.max()
        if low < 0 or high >= cardinality:
            raise UserError("codes_beyond", codec=info.name, low=low, high=high, highest=cardinality - 1)


def check_codebooks(codec: str, codebooks: int | None, most: int) -> int:
    """Return the requested number of codebooks, or `most` for None.

    Raises:
        UserError: the codec does not have this number of codebooks.
    """
    if codebooks is None:
        return most
    if isinstance(codebooks, bool) or not isinstance(codebooks, int) or not 1 <= codebooks <= most:
        raise UserError("codebook_count", codec=codec, codebooks=codebooks, hint=f"it has 1 to {most}")
    return codebooks
