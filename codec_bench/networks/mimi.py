"""Mimi frame by frame with state, equal to `MimiModel` on the whole.

Every convolution keeps the end of its input (`kernel - stride` samples, dilation included), every transposed
convolution its additions to incomplete outputs, and both transformers their keys and values within the window, and
their position. The decoder of transformers carries its transformer's state only: with `decoder_past_key_values`, its
convolutions begin every piece with zeros and lose their overlap, which is wrong at the edges of every frame.
"""

from __future__ import annotations

from typing import Any

import torch


class MimiParts:
    """The parts of transformers' `MimiModel`, and both ways through them.

    Older releases of transformers 5 hold all parts in the model, newer ones in an encoder and a decoder.

    Args:
        net: transformers' `MimiModel` in eval mode.
    """

    def __init__(self, net: Any) -> None:
        encoder, decoder = (half if hasattr(half, layer) else net
                            for half, layer in ((net.encoder, "downsample"), (net.decoder, "upsample")))  # fmt: skip
        self.to_hidden = encoder.encoder if encoder is net else encoder.encoder_seanet
        self.from_hidden = decoder.decoder if decoder is net else decoder.decoder_seanet
        self.encoder_transformer, self.downsample = encoder.encoder_transformer, encoder.downsample
        self.decoder_transformer, self.upsample = decoder.decoder_transformer, decoder.upsample

    def latents(self, waves: torch.Tensor) -> torch.Tensor:
        """Encode whole signals: `(batch, 1, samples)` to `(batch, hidden, frames)`."""
        return self.downsample(_transformed(self.encoder_transformer, self.to_hidden(waves)))

    def waves(self, latents: torch.Tensor) -> torch.Tensor:
        """Decode whole signals: `(batch, hidden, frames)` to `(batch, 1, samples)`."""
        return self.from_hidden(_transformed(self.decoder_transformer, self.upsample(latents)))


def _transformed(transformer: Any, hidden: torch.Tensor, **more: Any) -> torch.Tensor:
    return transformer(hidden.transpose(1, 2), **more).last_hidden_state.transpose(1, 2)


class MimiState:
    """The state of a batch of streams; calls take pieces of one length.

    Args:
        net: transformers' `MimiModel` in eval mode.
    """

    def __init__(self, net: Any) -> None:
        from transformers import DynamicCache

        self._parts = MimiParts(net)
        self._ends: dict[Any, torch.Tensor] = {}
        self._past = {
            transformer: DynamicCache(config=transformer.config)
            for transformer in (self._parts.encoder_transformer, self._parts.decoder_transformer)
        }

    def latents(self, waves: torch.Tensor) -> torch.Tensor:
        """Encode waves `(batch, 1, frames * 1920)` to latents `(batch, hidden, frames)`."""
        hidden = self._layers(self._parts.to_hidden.layers, waves)
        return self._convolve(self._parts.downsample, self._transform(self._parts.encoder_transformer, hidden))

    def waves(self, latents: torch.Tensor) -> torch.Tensor:
        """Decode latents `(batch, hidden, frames)` to waves `(batch, 1, frames * 1920)`."""
        hidden = self._transform(self._parts.decoder_transformer, self._overlap(self._parts.upsample, latents))
        return self._layers(self._parts.from_hidden.layers, hidden)

    def _layers(self, layers: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Run layers on the next segment, with each convolution's carried state."""
        for layer in layers:
            if hasattr(layer, "block"):
                inner = self._layers(layer.block, hidden)
                direct = (
                    hidden if isinstance(layer.shortcut, torch.nn.Identity) else self._convolve(layer.shortcut, hidden)
                )
                hidden = direct + inner
            elif isinstance(getattr(layer, "conv", None), torch.nn.ConvTranspose1d):
                hidden = self._overlap(layer, hidden)
            elif hasattr(layer, "conv"):
                hidden = self._convolve(layer, hidden)
            else:
                hidden = layer(hidden)
        return hidden

    def _convolve(self, layer: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Convolve a segment causally after the stored end of the segment before."""
        conv = layer.conv
        keep = (conv.kernel_size[0] - 1) * conv.dilation[0] + 1 - conv.stride[0]
        if keep == 0:
            return conv(hidden)
        before = self._ends.get(layer)
        if before is None:
            first = hidden[..., :1] if layer.pad_mode == "replicate" else torch.zeros_like(hidden[..., :1])
            before = first.expand(-1, -1, keep)
        joined = torch.cat([before, hidden], dim=-1)
        self._ends[layer] = joined[..., -keep:].clone()
        return conv(joined)

    def _overlap(self, layer: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Upsample a segment by a transposed convolution, joined to the segment before.

        The part that overlaps with the next segment is stored and added there.
        """
        conv = layer.conv
        output = conv(hidden)
        pending = conv.kernel_size[0] - conv.stride[0]
        if pending == 0:
            return output
        if (before := self._ends.get(layer)) is not None:
            output[..., :pending] += before
        end = output[..., -pending:]
        # The next piece's output already has the bias, so it is subtracted here.
        self._ends[layer] = end.clone() if conv.bias is None else end - conv.bias[:, None]
        return output[..., :-pending]

    def _transform(self, transformer: Any, hidden: torch.Tensor) -> torch.Tensor:
        return _transformed(transformer, hidden, past_key_values=self._past[transformer], use_cache=True)
