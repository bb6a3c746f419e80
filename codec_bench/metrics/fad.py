"""Distances between sets of embeddings: FAD, KAD, KID, KL, density, coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from codec_bench.features.clap import Clap
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import FeatureMetric, Inputs
from codec_bench.metrics.sim import EmbeddingSource, speaker_encoder
from codec_bench.stats.embeddings import KEY, pack_embeddings
from codec_bench.types import Score


def _encoder(metric: str, variant: str | None, point: str | None, others: Sequence[str]) -> EmbeddingSource:
    """Return the source of embeddings that a metric's variant names.

    Args:
        metric, variant, point: the parts of `metric[variant@point]`.
        others: variants that mean CLAP; all others name a speaker encoder.
    """
    if variant not in others:
        return speaker_encoder(metric, variant, point, others)
    if point is not None:
        raise UserError("no_precision", name=f"{metric}[{variant}]", point=point, hint=f"use {metric}[{variant}]")
    return EmbeddingSource(Clap.name, Clap.protocol)


class SetDistance(FeatureMetric):
    """Base class of values of a whole set of pairs of embeddings.

    An item's own value is the squared Euclidean distance between its embeddings. The record keeps it to show which
    items moved most; the set's value does not use it.

    Args:
        variant: the encoder: `clap-htsat-unfused` for any sound, or one of `sim`; None for `wavlm-large-sv`.
        point: its precision, as for `sim`; CLAP has none.
    """

    kind = "pair"
    takes_prompt = True
    higher_is_better = False
    others: ClassVar[Sequence[str]] = (Clap.name,)
    """Encoders besides those of speakers."""

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        key = type(self).name
        encoder = _encoder(key, variant, point, self.others)
        self.name = key + (f"[{variant}]" if variant else "") + (f"@{point}" if point else "")
        self._feature = encoder.feature
        self.estimate_features = self.reference_features = (encoder.feature,)
        self.protocol = f"{type(self).protocol}/{encoder.protocol}"

    def _score(self, item: Inputs) -> Score:
        """Return the squared distance of one pair's embeddings.

        Both embeddings are stored in `detail`, because the value of the set needs them.
        """
        reference, estimate = (np.asarray(result["embedding"], np.float32) for result in item.features(self._feature))
        moved = float(((reference.astype(np.float64) - estimate) ** 2).sum())
        return Score.ok(moved, self.protocol, detail={KEY: pack_embeddings(reference, estimate)})


class Fad(SetDistance):
    """The Fréchet distance of embeddings. Lower is better; a copy has 0.

    It shows whether a system makes all voices alike or leaves the space of natural speech. It is biased upward for
    small
    sets: compare sets of the same size, or their extrapolated values. It needs 2 items, and four times as many as
    dimensions to extrapolate.

    Embeddings are the project's speaker encoders, s3prl upstreams and CLAP, one per item. Published FADs use windows as
    one set (VGGish, CLAP) and do not compare. See also A. Gui et al., ICASSP 2024.

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
    """The kernel distance of embeddings, times 100. Lower is better; a copy has 0.

    The squared maximum mean discrepancy with a Gaussian kernel as wide as the median distance between references. It is
    unbiased, so it may be slightly negative, and assumes no Gaussian sets. At least 2 items, at most 2,000 chosen by a
    hash. Encoders are those of `fad`. An item's own partner is excluded from the cross term
    (`codec_bench.stats.kernel_distance`), because the two are not independent.
    """

    name = "kad"
    aggregate = "kernel"
    protocol = "kad/pairs/gaussian-median-reference/2000-items"
    paper = "Chung et al.: KAD: No More FAD! An Effective and Efficient Metric for Audio Generation, ICML 2025"
    source = "kadtk calc_kernel_audio_distance with the same width, without an item's own partner, to 1e-6 relative"


class Kid(SetDistance):
    """The kernel distance with KID's kernel. Lower is better; a copy has 0.

    The squared maximum mean discrepancy with the kernel `(x . y / dimensions + 1)^3`, over all items in place of random
    subsets, without an item's own partner in the cross term. Items and encoders are those of `kad`. It may be slightly
    negative.
    """

    name = "kid"
    aggregate = "kernel-cubic"
    protocol = "kid/pairs/cubic/2000-items"
    paper = "Bińkowski, Sutherland, Arbel, Gretton: Demystifying MMD GANs, ICLR 2018"
    source = "torch-fidelity 0.4.0 mmd2 with u-statistic, to 1e-6 relative"


class Kl(SetDistance):
    """The KL divergence (nats) of Gaussians fitted to embeddings. Lower is better.

    `KL(references || estimates)`: large where the estimates lack the references' variety. It needs more items than
    dimensions and is biased upward for small sets. Published KLs of generated audio compare a tagger's class
    probabilities item by item and do not compare.
    """

    name = "kl"
    range = (0.0, None)
    unit = "nat"
    aggregate = "divergence"
    protocol = "kl/pairs/gaussians"
    paper = "Kullback, Leibler: On Information and Sufficiency, Annals of Mathematical Statistics 1951"
    source = "torch.distributions.kl_divergence of MultivariateNormal, to 1e-6 relative"


class Density(SetDistance):
    """How densely estimates lie among references. Higher is better; about 1 if equal.

    The mean number of reference balls that hold an estimate, over 5; a ball reaches the fifth neighbour. An item's own
    partner counts, so a codec's density is high. It needs 6 items; at most 2,000, as for `kad`.
    """

    name = "density"
    higher_is_better = True
    range: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    aggregate = "density"
    protocol = "density/pairs/5-neighbours/2000-items"
    paper = "Naeem, Oh, Uh, Choi, Yoo: Reliable Fidelity and Diversity Metrics for Generative Models, ICML 2020"
    source = "prdc 0.2 compute_prdc with nearest_k=5, to 1e-9"


class Coverage(Density):
    """The share of references near an estimate. Higher is better; a copy has 1.

    Low coverage with high density: the system makes all voices alike. Items and neighbours are those of `density`.
    """

    name = "coverage"
    range = (0.0, 1.0)
    aggregate = "coverage"
    protocol = "coverage/pairs/5-neighbours/2000-items"
