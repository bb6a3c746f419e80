"""SpeechBERTScore: whether frames have similar ones in the reference."""

from __future__ import annotations

import numpy as np

from codec_bench.features.frames import frames_protocol
from codec_bench.features.precision_names import BY_AUTOCAST, parse_precision, suffix
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import FeatureMetric, Inputs
from codec_bench.metrics.sim import UPSTREAM
from codec_bench.metrics.units import METHOD
from codec_bench.types import Score

DEFAULT = "hubert_base"


class SpeechBertScore(FeatureMetric):
    """The mean greatest cosine of frames with the reference. Higher is better, to 1.

    Frames are a hidden state of a self-supervised speech network, so this is a precision of content, whatever the voice
    and speed. Nothing is warped, and lengths may differ. `detail` holds the recall (sides exchanged) and the harmonic
    mean. An estimate with missing words keeps its precision and loses recall.

    The default is HuBERT-base's last hidden state, as in the reference implementation. Networks are s3prl upstreams,
    which normalise the audio as in training; the reference implementation does not for `wavlm-large` and
    `hubert-large`, so these numbers differ.

    Args:
        variant: `s3prl/NAME` for an s3prl upstream, with or without the number of a hidden state
            (`s3prl/wavlm_large@14`); None for `s3prl/hubert_base`.
        point: `tf32` or `bfloat16` in place of float32; each has its own protocol.

    Examples:
        >>> from codec_bench.metrics import Inputs, build_metric
        >>> sides = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 4.0]])
        >>> frames = [{"s3prl-frames[hubert_base]": {"frames": side}} for side in sides]
        >>> item = Inputs("a", 16000, reference_features=frames[0], estimate_features=frames[1])
        >>> round(build_metric("speechbertscore").compute([item])[0].value, 2)
        0.8
    """

    name = "speechbertscore"
    kind = "pair"
    range = (-1.0, 1.0)
    paper = METHOD
    source = "DiscreteSpeechMetrics bert_score (precision) of s3prl's frames, to 1e-5"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        network = DEFAULT if variant is None else variant.removeprefix(UPSTREAM)
        if variant is not None and (not variant.startswith(UPSTREAM) or not network):
            raise UserError(
                "no_variant",
                variant=variant,
                name="speechbertscore",
                hint=f"use speechbertscore, or name an upstream of s3prl: speechbertscore[{UPSTREAM}wavlm_base_plus@9]",
            )
        stem = "speechbertscore" + (f"[{variant}]" if variant else "")
        self.name = stem + (f"@{point}" if point else "")
        self._feature = f"s3prl-frames[{network}]" + (f"@{point}" if point else "")
        self.estimate_features = self.reference_features = (self._feature,)
        precision = parse_precision(stem, point, BY_AUTOCAST)
        self.protocol = f"speechbertscore/precision/{frames_protocol(network)}{suffix(precision)}"

    def _score(self, item: Inputs) -> Score:
        """Average each estimate frame's largest cosine with the reference's frames."""
        reference, estimate = (_directions(result["frames"]) for result in item.features(self._feature))
        cosines = estimate @ reference.T
        precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
        both = precision + recall
        detail = {"recall": recall, **({"f1": 2 * precision * recall / both} if both else {})}
        return Score.ok(min(1.0, max(-1.0, precision)), self.protocol, detail=detail)


def _directions(frames: np.ndarray) -> np.ndarray:
    """Scale frames to length 1, float64; a frame of zeros stays zero."""
    frames = np.asarray(frames, np.float64)
    return np.asarray(frames / np.maximum(np.linalg.norm(frames, axis=1, keepdims=True), 1e-12))
