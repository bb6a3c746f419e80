"""DAC's encoder and decoder of transformers, exact for items of ragged batches.

An item of a batch is exact if values beyond its end are zero before each convolution wider than one sample. In DAC all
of these but the first follow a Snake, which maps zero to zero, so the activation writes the zeros.
"""

from __future__ import annotations

from typing import Any

from codec_bench.kernels.mask import activate


def encode_waves(encoder: Any, waves: Any, lengths: Any) -> Any:
    """Run transformers' `DacEncoder` over a batch.

    Args:
        waves: float32 `(items, 1, samples)`, zero after each item's end.
        lengths: int64 `(items,)`, samples of each item, on the same device.

    Returns:
        Latents `(items, hidden, frames)`, unspecified beyond an item's own frames.
    """
    hidden = encoder.conv1(waves)
    for block in encoder.block:
        for unit in (block.res_unit1, block.res_unit2, block.res_unit3):
            hidden = _residual(unit, hidden, lengths)
        hidden = block.conv1(_snake(block.snake1, hidden, lengths))
        lengths = _after(block.conv1, lengths)
    return encoder.conv2(_snake(encoder.snake1, hidden, lengths))


def decode_latents(decoder: Any, latents: Any, lengths: Any) -> Any:
    """Run transformers' `DacDecoder` over a batch.

    Args:
        latents: float32 `(items, hidden, frames)`, arbitrary beyond each item's frames.
        lengths: int64 `(items,)`, frames of each item, on the same device.

    Returns:
        Waves `(items, 1, samples)`, unspecified beyond an item's own samples.
    """
    hidden = decoder.conv1(activate(latents, lengths).value)
    for block in decoder.block:
        hidden = block.conv_t1(_snake(block.snake1, hidden, lengths))
        lengths = _after_transposed(block.conv_t1, lengths)
        for unit in (block.res_unit1, block.res_unit2, block.res_unit3):
            hidden = _residual(unit, hidden, lengths)
    return decoder.tanh(decoder.conv2(_snake(decoder.snake1, hidden, lengths)))


def decoded_samples(decoder: Any, frames: int) -> int:
    """Count the samples decoded from `frames`; odd strides give fewer than encoded."""
    for block in decoder.block:
        frames = _after_transposed(block.conv_t1, frames)
    return frames


def _residual(unit: Any, hidden: Any, lengths: Any) -> Any:
    inner = unit.conv1(_snake(unit.snake1, hidden, lengths))
    return hidden + unit.conv2(_snake(unit.snake2, inner, lengths))


def _snake(layer: Any, hidden: Any, lengths: Any) -> Any:
    return activate(hidden, lengths, "snake", layer.alpha).value


def _after(conv: Any, length: Any) -> Any:
    return (length + 2 * conv.padding[0] - conv.kernel_size[0]) // conv.stride[0] + 1


def _after_transposed(conv: Any, length: Any) -> Any:
    return (length - 1) * conv.stride[0] - 2 * conv.padding[0] + conv.kernel_size[0] + conv.output_padding[0]
