"""An LSTM in both directions over a padded batch, without packing: what follows an item's end does not reach the item.

The backward direction begins behind an item's end. There, an additional input closes the gates: with the input gate and
the forget gate at zero, the state is zero at every step of padding, which is the state that an item begins with alone.
So the steps of a batch have one shape whatever the lengths are, and the host needs to know no length. A CPU packs the
steps, which omits the padding.

This module imports torch: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from codec_bench.networks.ragged import Bounded, full, inside
from codec_bench.networks.speech_extractor import Folding

_CLOSED = -1e4
"""Added to what opens a gate. The sigmoid of it is zero in every precision, and half precision can hold it."""
_FLAGS = 8  # additional inputs, of which one is used: tensor cores read rows of a multiple of eight


class BothWays(Folding, nn.LSTM):
    """An LSTM in both directions, with torch's names of weights.

    Args:
        inputs: channels of the input. hidden: channels of each direction. layers: number of layers.
    """

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers, batch_first=True, bidirectional=True)

    def over(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """`(items, steps, 2 x hidden)` of `(items, steps, inputs)`, over each item's own steps.

        Values beyond an item's end may be anything finite, and are unspecified in the result.
        """
        if full(lengths, x.shape[1]):
            return self(x)[0]
        if x.is_cpu and not isinstance(lengths, Bounded):
            packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        padding = ~inside(lengths, x.shape[1], x.device)
        flags = F.pad(padding.to(x.dtype)[..., None], (0, _FLAGS - 1))
        for layer in self.folded():
            x = layer(torch.cat([x, flags], dim=2))[0]
        return x

    def fold(self) -> list[nn.LSTM]:
        """Every layer by itself, with the inputs that close its gates."""
        return [self._closing(layer) for layer in range(self.num_layers)]

    def _closing(self, layer: int) -> nn.LSTM:
        inputs = self.input_size if layer == 0 else 2 * self.hidden_size
        lstm = nn.LSTM(inputs + _FLAGS, self.hidden_size, batch_first=True, bidirectional=True, device="meta")
        for direction in ("", "_reverse"):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                values = getattr(self, f"{name}_l{layer}{direction}").detach()
                if name == "weight_ih":  # its rows are those of the input gate, the forget gate and two others
                    flags = values.new_zeros(len(values), _FLAGS)
                    flags[: 2 * self.hidden_size, 0] = _CLOSED
                    values = torch.cat([values, flags], dim=1)
                setattr(lstm, f"{name}_l0{direction}", nn.Parameter(values, requires_grad=False))
        lstm.flatten_parameters()
        return lstm.eval()
