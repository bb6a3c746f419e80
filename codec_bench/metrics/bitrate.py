"""Bitrate: the bits that a codec really sent, divided by the seconds of audio that they encode."""

from __future__ import annotations

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Score


class Bitrate(ItemMetric):
    """Bits per second that were sent: packed codes, packets and side information, without the container's overhead.

    Lower is better. The corpus value is all bits over all seconds, not the mean of the items' rates. So bits that are
    sent once per utterance have the weight that they have in a transmission. Undefined for a system that sends no bits
    (synthesised or ready-made audio, or a codec whose latents are not discrete) and for audio of no length. Exact,
    because it is one division.

    Examples:
        >>> from codec_bench.metrics import Inputs, build_metric
        >>> build_metric("bitrate").compute([Inputs("a", 8000, bits=128_000.0, duration_s=2.0)])[0].value
        64000.0
    """

    name = "bitrate"
    kind = "single"
    signals = False
    higher_is_better = False
    unit = "bit/s"
    range = (0.0, None)
    bounds = (None, None)  # bits over whole seconds are no errors over words
    aggregate = "ratio"
    protocol = "bitrate/payload"
    source = "the codec's own codes"
    where = "inline"

    def _score(self, item: Inputs) -> Score:
        """The score of an item; `numerator` holds its bits and `denominator` its seconds."""
        if item.bits is None:
            return Score.undefined(item.no_bits or Diagnostic("not_a_codec"), self.protocol)
        if not item.duration_s:
            return Score.undefined(Diagnostic("no_length"), self.protocol)
        return Score.ok(item.bits / item.duration_s, self.protocol, numerator=item.bits, denominator=item.duration_s)
