"""FAD and KAD: how far the distribution of the estimates' embeddings lies from that of the references'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from codec_bench.errors import UserError
from codec_bench.features.clap import Clap
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.metrics.sim import SpeakerEncoder, speaker_encoder
from codec_bench.stats.packing import KEY, packed
from codec_bench.types import Score


def _encoder(metric: str, variant: str | None, point: str | None, others: Sequence[str]) -> SpeakerEncoder:
    """The feature of embeddings that a variant names, and its protocol.

    Raises:
        UserError: there is no such encoder, or it does not have this precision. MissingExtra: s3prl is not installed.
    """
    if variant not in others:
        return speaker_encoder(metric, variant, point, others)
    if point is not None:
        raise UserError(
            f"{metric}[{variant}] has no precision '@{point}'; it is computed in float32",
            hint=f"use {metric}[{variant}]",
        )
    return SpeakerEncoder(Clap.name, Clap.protocol)


class SetDistance(ItemMetric):
    """The common part of the values of a whole set of pairs of embeddings: which embeddings they read, and what a
    record keeps of them.

    An item's own value is the squared Euclidean distance between its two embeddings: how far the item moved. It is in
    the record, so that the items that moved most are found; the set's value is not made of it.

    Args:
        variant: the encoder: `clap-htsat-unfused` for any sound, or one of `sim`; None for `wavlm-large-sv`.
        point: its precision, as for `sim`; CLAP has none.

    Raises:
        UserError: there is no such encoder, or it does not have this precision. MissingExtra: s3prl is not installed.
    """

    kind = "pair"
    takes_prompt = True
    signals = False
    higher_is_better = False
    where = "inline"
    others: ClassVar[Sequence[str]] = (Clap.name,)
    """Encoders beside those of speakers."""

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        key = type(self).name
        encoder = _encoder(key, variant, point, self.others)
        self.name = key + (f"[{variant}]" if variant else "") + (f"@{point}" if point else "")
        self._feature = encoder.feature
        self.estimate_features = self.reference_features = (encoder.feature,)
        self.protocol = f"{type(self).protocol}/{encoder.protocol}"

    def _score(self, item: Inputs) -> Score:
        """The score of an item; `detail` holds both embeddings, of which the value of the set is made."""
        reference, estimate = (
            np.asarray(features[self._feature]["embedding"], np.float32)
            for features in (item.reference_features, item.estimate_features)
        )
        moved = float(((reference.astype(np.float64) - estimate) ** 2).sum())
        return Score.ok(moved, self.protocol, detail={KEY: packed(reference, estimate)})


class Fad(SetDistance):
    """The Fréchet distance between the embeddings of all references and those of all estimates. Lower is better; a copy
    has 0.

    It sees what a mean over items does not: whether a system makes all voices alike, or leaves the space of natural
    speech. It is a value of the whole set, biased upward for small sets: only sets of the same size can be compared, or
    their extrapolated values. A set of one item has no covariance and no value; at least 2 are needed, and four times
    as many as dimensions to extrapolate.

    Embeddings are the project's speaker encoders, the upstreams of s3prl, and CLAP, one per item. Published FADs use
    embeddings of windows as one set (VGGish, CLAP), and cannot be compared with these.

    Paper: K. Kilgour et al., "Fréchet Audio Distance", Interspeech 2019; A. Gui et al., "Adapting Fréchet Audio
    Distance for Generative Music Evaluation", ICASSP 2024. Reference implementation: scipy's `sqrtm` on the covariances
    of the whole set (fadtk's formula), to 1e-6 relative.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("fad[ge2e]")(reference=[clip], estimate=[coarse])[0]["fad[ge2e]"].value, 1)
        0.4
    """

    name = "fad"
    range = (0.0, None)
    aggregate = "frechet"
    protocol = "fad/pairs"
    paper = "Kilgour, Zuluaga, Roblek, Sharifi: Fréchet Audio Distance, Interspeech 2019"
    source = "fadtk calc_frechet_distance at ec74b1f9 with scipy's sqrtm, to 1e-6 relative"


class Kad(SetDistance):
    """The kernel distance between the embeddings of references and estimates, times 100. Lower is better; a copy has 0.

    The squared maximum mean discrepancy with a Gaussian kernel as wide as the median distance between references. It is
    not biased by the size of the set, so it may be slightly negative, and it assumes no Gaussian sets. Over 2,000 items
    at most, chosen by a hash. At least 2 items are needed. Encoders are those of `fad`. An item's own partner is left
    out of the cross term (see `codec_bench.stats.kernel_distance`), because a recording and what a codec made of it are
    not independent.

    Paper: Y. Chung et al., "KAD: No More FAD!", ICML 2025. Reference implementation: kadtk `calc_kernel_audio_distance`
    with the width given, to 1e-6 relative, but for the partners.
    """

    name = "kad"
    aggregate = "kernel"
    protocol = "kad/pairs/gaussian-median-reference/2000-items"
    paper = "Chung, Eu, Lee, Choi, Nam, Chon: KAD: No More FAD! An Effective and Efficient Evaluation Metric for Audio Generation, ICML 2025"
    source = "kadtk calc_kernel_audio_distance with the width given, but for an item's own partner, to 1e-6 relative"
