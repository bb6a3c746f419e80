"""Bitrate: the bits that a codec sent per second of audio."""

from __future__ import annotations

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import FeatureMetric, Inputs
from codec_bench.types import Score


class Bitrate(FeatureMetric):
    """Bits sent per second: codes, packets and side information, no containers.

    Lower is better. The corpus value is all bits over all seconds, not a mean of rates, so bits sent once per utterance
    weigh as in a transmission. Undefined for a system that sends no bits (synthesised or ready-made audio, or latents
    that are not discrete) and for audio of no length.

    Examples:
        >>> from codec_bench.metrics import Inputs, build_metric
        >>> build_metric("bitrate").compute([Inputs("a", 8000, bits=128_000.0, duration_s=2.0)])[0].value
        64000.0
    """

    name = "bitrate"
    kind = "single"
    higher_is_better = False
    unit = "bit/s"
    range = (0.0, None)
    bounds = (None, None)  # bits over whole seconds are no errors over words
    aggregate = "ratio"
    protocol = "bitrate/payload"
    source = "the codec's own codes"

    def _score(self, item: Inputs) -> Score:
        """Divide the bits sent by the seconds of audio; undefined if either is missing."""
        if item.bits is None:
            return Score.undefined(item.no_bits or Diagnostic("not_a_codec"), self.protocol)
        if not item.duration_s:
            return Score.undefined(Diagnostic("no_length"), self.protocol)
        return Score.ok(item.bits / item.duration_s, self.protocol, numerator=item.bits, denominator=item.duration_s)
