"""Speaker embeddings of the project 3D-Speaker: CAM++ and ERes2Net."""

from __future__ import annotations

from typing import Any

from codec_bench.features.speakers.speaker_encoder import FbankEncoder
from codec_bench.networks.kaldi import samples_of


class CamPlusPlusSpeaker(FbankEncoder):
    """CAM++'s speaker embedding, trained on 200,000 speakers of Mandarin.

    Protocol `campplus-zh-cn-common/3d-speaker`: Kaldi's filter bank of 80 bands without dither, less its mean over the
    signal; the network of `iic/speech_campplus_sv_zh-cn_16k-common`; the raw embedding, without a norm. It needs three
    frames (720 samples). Padding is masked layer by layer: batches change an embedding by less than 1e-5 in float32.

    Result: `{"embedding": float32 (192,)}`.

    Paper: H. Wang, S. Zheng, Y. Chen, L. Cheng, Q. Chen, "CAM++", Interspeech 2023. Reference implementation:
    modelscope/3D-Speaker at 09e7806, `speakerlab/bin/infer_sv.py`, signal by signal, to 1e-5.

    Args:
        device, weights, point: as for the base class.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    name = "campplus"
    protocol = "campplus-zh-cn-common/3d-speaker"
    min_samples = samples_of(3)  # frames of the filter bank that give the statistics two, which a deviation needs

    def _architecture(self) -> Any:
        from codec_bench.networks.campplus import CamConfig, CamPlusPlus

        return CamPlusPlus(CamConfig())


class ERes2NetSpeaker(FbankEncoder):
    """ERes2Net's speaker embedding, trained on VoxCeleb: the similarity of CV3-Eval.

    Protocol `eres2net-voxceleb/cv3-eval`: Kaldi's filter bank of 80 bands without dither, less its mean over the
    signal; the network of `iic/speech_eres2net_sv_en_voxceleb_16k`; the raw embedding, without a norm. It needs nine
    frames (1,680 samples). Padding is masked layer by layer: batches change an embedding by less than 1e-5 in float32.

    Result: `{"embedding": float32 (192,)}`.

    Paper: Y. Chen et al., "An Enhanced Res2Net with Local and Global Feature Fusion for Speaker Verification",
    Interspeech 2023. Reference implementation: modelscope/3D-Speaker at 09e7806, `speakerlab/bin/infer_sv.py`, signal
    by signal, to 1e-5. CV3-Eval contains the same network and names this checkpoint.

    Args:
        device, weights, point: as for the base class.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    name = "eres2net"
    protocol = "eres2net-voxceleb/cv3-eval"
    min_samples = samples_of(9)  # frames of the filter bank that give the statistics two, which a deviation needs

    def _architecture(self) -> Any:
        from codec_bench.networks.eres2net import ERes2Net, ERes2NetConfig

        return ERes2Net(ERes2NetConfig())
