"""NORESQA-MOS: an opinion score from a clean recording, which may say other words."""

from __future__ import annotations

from codec_bench.features.non_matching_mos import NORESQA, NoresqaFrames
from codec_bench.metrics.squim_mos import SquimMos


class NoresqaMos(SquimMos):
    """NORESQA-MOS's score next to the reference. Higher is better, 1 to 5.

    The network predicts how far below 5 the estimate is; VERSA reports that number, where lower is better. The frames
    are paired, so the signals need one length to 0.1 s; the authors cut or repeat the reference.

    Examples:
        >>> import numpy as np
        >>> from codec_bench.metrics.base import Inputs
        >>> frames = {"noresqa-frames": {"frames": np.zeros((50, 12), np.float32)}}  # each class is as likely
        >>> item = Inputs("a", 16000, estimate_features=frames, reference_features=frames)
        >>> NoresqaMos().compute([item])[0].value
        3.0
    """

    name = "noresqa_mos"
    protocol = f"noresqa_mos/{NORESQA.protocol}"
    paper = "Manocha, Kumar: Speech Quality Assessment through MOS using Non-Matching References, Interspeech 2022"
    source = "github.com/facebookresearch/Noresqa at 8d56b95, to 1e-5 for signals of one length"
    estimate_features = reference_features = (NoresqaFrames.name,)
