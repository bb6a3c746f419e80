"""A bidirectional LSTM over a padded batch; padding reaches no item.

The backward direction begins behind an item's end. There, an additional input closes the input and forget gates, so the
state stays zero, as at an item's own start. So steps have one shape whatever the lengths, and the host needs no length.
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
"""Closes a gate: its sigmoid is zero in every precision, and half precision can hold it."""
_FLAGS = 8  # additional inputs (one is used): tensor cores read rows of a multiple of eight


class BothWays(Folding, nn.LSTM):
    """A bidirectional LSTM, with torch's names of weights."""

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers, batch_first=True, bidirectional=True)

    def over(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """Map `(items, steps, inputs)` to `(items, steps, 2 x hidden)`, ignoring padding.

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
        """Return every layer with the inputs that close its gates."""
        return [self._closing(layer) for layer in range(self.num_layers)]

    def _closing(self, layer: int) -> nn.LSTM:
        """Build one layer's LSTM with one more input, a flag that is 1 on padding.

        The flag closes the gates, so the state does not change there.
        """
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
