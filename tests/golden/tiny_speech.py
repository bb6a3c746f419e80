"""Small networks of noise in the layouts of the published speech encoders, with what the features need beside them."""

from __future__ import annotations

import json
import zipfile

import deterministic_weights
import torch
import transformers

from codec_bench.config.registry import load_attribute
from codec_bench.features import learned
from codec_bench.features.audiobox import Audiobox
from codec_bench.features.audioseal import AudioSeal
from codec_bench.features.emotion2vec import Emotion2vecPlusLarge
from codec_bench.features.non_matching_mos import NoresqaFrames, SquimFrames
from codec_bench.features.scoreq import Nomad, Scoreq, ScoreqEmbedding
from codec_bench.features.speakers.redimnet import ReDimNetB5
from codec_bench.features.speakers.three_d_speaker import CamPlusPlusSpeaker, ERes2NetSpeaker
from codec_bench.features.speakers.wavlm_sv import CLASSIFIER, WavlmLargeSv
from codec_bench.features.speakers.wespeaker import WespeakerResnet34
from codec_bench.features.ttsds2_activations import Ttsds2Wav2vec2
from codec_bench.features.units import HubertUnits
from codec_bench.features.utmosv2 import UtmosV2
from codec_bench.features.wvmos import Wvmos
from codec_bench.networks.noresqa import NoresqaNet
from codec_bench.networks.speech_config import EncoderConfig

LETTERS = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
FACTS = dict(
    hidden_size=48, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96, conv_dim=(32,) * 7, num_labels=7,
    num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=3, tdnn_dim=(32, 32, 32, 32, 60), xvector_output_dim=24,
)  # fmt: skip
AESTHETICS = {
    "nth_layer": 13, "use_weighted_layer_sum": True, "output_dim": 1, "proj_act_fn": "gelu", "proj_num_layer": 3,
    "proj_ln": True,
    "proj_dropout": 0.1, "normalize_embed": True, "precision": "bf16",
    "target_transform": {axis: {"mean": 5.0 + index, "std": 1.0 + index / 4}
        for index, axis in enumerate(("CE", "CU", "PC", "PQ"))},
}  # fmt: skip
"""The keys of the published configuration of Audiobox Aesthetics, with other numbers."""
CONVS = ((24, 10, 5), *((24, 3, 2),) * 4, *((24, 2, 2),) * 2)
SMALL_CONVS = tuple((32, kernel, step) for _, kernel, step in CONVS)
SMALL_WAV2VEC2 = {key: FACTS[key] for key in FACTS if not key.startswith(("num_labels", "tdnn", "xvector"))}
"""What transformers' wav2vec 2.0 takes of `FACTS`, whose convolutions are those of `SMALL_CONVS`."""
SMALL = EncoderConfig("layer_norm", 32, 3, 4, 64, True, CONVS, conv_pos=16, conv_pos_groups=2, relative_buckets=320)


def write_ctc(folder, kind, norm, stable, *, normalise=True, **changes):
    """A small network with seeded weights, its letters and its front end, as transformers saves them."""
    from transformers import (
        HubertConfig,
        HubertForCTC,
        Wav2Vec2Config,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
    )

    folder.mkdir(parents=True, exist_ok=True)
    config_class, model_class = {
        "hubert": (HubertConfig, HubertForCTC),
        "wav2vec2": (Wav2Vec2Config, Wav2Vec2ForCTC),
    }[kind]
    config = config_class(
        **{
            "vocab_size": len(LETTERS),
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "conv_dim": (16,) * 7,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
            "feat_extract_norm": norm,
            "conv_bias": norm == "layer",
            "do_stable_layer_norm": stable,
            "pad_token_id": 0,
            **changes,
        }
    )
    torch.manual_seed(len(kind) + stable)
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # the transcripts of a new network are empty, because its biases are zero
            parameter.add_(0.1 * torch.randn_like(parameter))
        # Letters and the blank must both win often enough, so that different networks give different transcripts.
        model.lm_head.weight.mul_(8)
    model.save_pretrained(folder)
    vocab = folder / "vocab.json"
    vocab.write_text(json.dumps({letter: index for index, letter in enumerate(LETTERS)}), "utf-8")
    Wav2Vec2CTCTokenizer(str(vocab)).save_pretrained(folder)
    Wav2Vec2FeatureExtractor(do_normalize=normalise, return_attention_mask=norm == "layer").save_pretrained(folder)
    return folder


def standing_in(net):
    """The module with stand-in weights, of the size of trained ones, so that every part counts."""
    net.load_state_dict(deterministic_weights.stand_in(net))
    return net.eval()


def saved(folder, *, mixes=True, normalises=False, safetensors=False, **others):
    """A published folder with a small network, and the network."""
    config = transformers.WavLMConfig(**{**FACTS, "use_weighted_layer_sum": mixes, **others})
    net = standing_in(transformers.WavLMForXVector(config))
    front = transformers.Wav2Vec2FeatureExtractor(do_normalize=normalises, return_attention_mask=True)
    front.save_pretrained(folder)
    net.save_pretrained(folder)
    if not safetensors:  # the published file is older than these tensors, and older than torch's parametrisations
        (folder / "model.safetensors").unlink()
        state = net.state_dict()
        for ours, theirs in (("original0", "weight_g"), ("original1", "weight_v")):
            value = state.pop(f"wavlm.encoder.pos_conv_embed.conv.parametrizations.weight.{ours}")
            state[f"wavlm.encoder.pos_conv_embed.conv.{theirs}"] = value
        torch.save(state, folder / "pytorch_model.bin")
    return net, front


class SmallWavlmSv(WavlmLargeSv):
    """The feature with a network small enough for every test."""

    def _architecture(self):
        from codec_bench.networks.ecapa import SpeakerNet

        return SpeakerNet(SMALL, channels=32, pooled=48, embedding=20)


def published(state, path, **others):
    """Writes tensors in the layout of the published file."""
    torch.save({"model": {**state, CLASSIFIER: torch.zeros(3, 20)}, "best_valid_eer": 0.43, **others}, path)
    return str(path)


def write_s3prl(path):
    """A small WavLM in the layout of s3prl's converted checkpoints."""
    from codec_bench.features.speakers.s3prl import mended

    config = {
        "extractor_mode": "default", "encoder_layers": 2, "encoder_embed_dim": 32, "encoder_ffn_embed_dim": 64,
        "encoder_attention_heads": 4, "conv_feature_layers": "[(16,10,5)] + [(16,3,2)] * 4 + [(16,2,2)] * 2",
        "conv_pos": 16, "conv_pos_groups": 2, "relative_position_embedding": True, "gru_rel_pos": True,
        "num_buckets": 320, "max_distance": 800, "normalize": True,
    }  # fmt: skip
    with mended():
        from s3prl.upstream.wavlm.WavLM import WavLM, WavLMConfig
    torch.manual_seed(0)
    torch.save({"cfg": config, "model": WavLM(WavLMConfig(config)).state_dict()}, path)
    return str(path)


def s3prl_net(config, state=None):
    """s3prl's own network of this architecture, with these weights or its own."""
    from codec_bench.features.speakers.s3prl import mended

    facts = {
        "extractor_mode": "layer_norm" if config.extractor == "layer_norm" else "default",
        "encoder_layers": config.layers,
        "encoder_embed_dim": config.width,
        "encoder_ffn_embed_dim": config.feed_forward,
        "encoder_attention_heads": config.heads,
        "layer_norm_first": config.pre_norm,
        "conv_feature_layers": str(list(config.conv_layers)),
        "conv_bias": config.conv_bias,
        "conv_pos": config.conv_pos,
        "conv_pos_groups": config.conv_pos_groups,
    }
    with mended(), torch.inference_mode(False):
        if config.relative_buckets:
            from s3prl.upstream.wavlm.WavLM import WavLM, WavLMConfig

            bias = {"relative_position_embedding": True, "gru_rel_pos": True, "num_buckets": config.relative_buckets}
            net = WavLM(WavLMConfig({**facts, **bias, "max_distance": config.max_distance}))
        else:
            from s3prl.upstream.wav2vec2.wav2vec2_model import Wav2Vec2Config, Wav2Vec2Model

            net = Wav2Vec2Model(Wav2Vec2Config(**facts, required_seq_len_multiple=2))
        if state is None:
            return net
        problems = net.load_state_dict(state, strict=False)
    assert not problems.unexpected_keys
    assert all(name.startswith(("project_q", "final_proj")) for name in problems.missing_keys)
    return net.eval()


def small_utmos():
    """UTMOS22's network, small, in eval mode."""
    from codec_bench.networks.utmos import UtmosNet

    config = EncoderConfig("group_norm", 32, 2, 4, 48, False, conv_layers=CONVS, conv_pos=16, conv_pos_groups=4)
    net = UtmosNet(config, 24, 40).eval()
    net.load_state_dict(deterministic_weights.stand_in(net))
    return net


BASE = EncoderConfig("group_norm", 32, 2, 4, 48, False, conv_layers=CONVS, conv_pos=16, conv_pos_groups=4)
WAVLM = EncoderConfig("group_norm", 32, 2, 4, 48, False, CONVS, conv_pos=16, conv_pos_groups=4, relative_buckets=320)


class SmallScoreq(Scoreq):
    """The feature with a small network."""

    def _architecture(self):
        return BASE


class SmallScoreqEmbedding(ScoreqEmbedding):
    """The feature with a small network."""

    def _architecture(self):
        return BASE


def write_squim(folder):
    """SQUIM Objective with stand-in weights in the layout and size of the published file."""
    from torchaudio.models import squim_objective_base

    torch.save(standing_in(squim_objective_base()).state_dict(), folder / "squim.pth")
    return str(folder / "squim.pth")


class SmallNomad(Nomad):
    """The feature with a small network."""

    def _architecture(self):
        return BASE


def write_nomad(folder):
    """A small NOMAD in the layout of the published file."""
    from codec_bench.networks.scoreq import NomadNet

    torch.save(standing_in(NomadNet(BASE)).state_dict(), folder / "nomad_best_model.pt")
    return str(folder / "nomad_best_model.pt")


PRE_NORM = EncoderConfig(
    "layer_norm", 48, 2, 4, 96, pre_norm=True, conv_bias=True,
    conv_layers=((32, 10, 5), *((32, 3, 2),) * 4, *((32, 2, 2),) * 2),
    conv_pos=16, conv_pos_groups=4,
)  # fmt: skip


class SmallEmoVad(getattr(learned, "emo-vad")):
    """The feature with a small network."""

    @classmethod
    def _architecture(cls):
        from codec_bench.networks.emo_vad import EmoVadNet

        return EmoVadNet(PRE_NORM)


def write_emo_vad(folder):
    """The weights of the small network under its own names."""
    torch.save(standing_in(SmallEmoVad._architecture()).state_dict(), folder / "pytorch_model.bin")
    return str(folder / "pytorch_model.bin")


POST_NORM = EncoderConfig("group_norm", 48, 2, 4, 96, False, SMALL_CONVS, conv_pos=16, conv_pos_groups=4)
BIASED = EncoderConfig(
    "layer_norm", 48, 2, 4, 96, True, SMALL_CONVS, conv_pos=16, conv_pos_groups=4, relative_buckets=320
)


def _small_ssl_mos(name, net, config):
    """The class of a feature of SSL-MOS with a small encoder."""
    build = load_attribute(f"codec_bench.networks.ssl_mos:{net}")
    return type(f"Small{net}", (getattr(learned, name),), {"_architecture": classmethod(lambda cls: build(config))})


SSL_MOS = {
    "sheet-ssqa": _small_ssl_mos("sheet-ssqa", "SheetNet", POST_NORM),
    "sheet-ssqa-wavlm": _small_ssl_mos("sheet-ssqa-wavlm", "SheetWavlmNet", BIASED),
    "singmos-v1": _small_ssl_mos("singmos-v1", "SingMosNet", POST_NORM),
    "singmos-pro": _small_ssl_mos("singmos-pro", "SingMosProNet", PRE_NORM),
}


def write_ssl_mos(folder, name):
    """The weights of a small network under the published names, and one that only training used."""
    net = SSL_MOS[name]._architecture()
    ours = {inner: theirs for theirs, inner in net.prefixes.items()}
    state = {f"{ours['encoder.']}final_proj.bias": torch.zeros(3)}
    for inner, value in net.state_dict().items():
        prefix = next((one for one in ours if inner.startswith(one)), "")
        published = ours.get(prefix, "") + inner.removeprefix(prefix)
        state[published] = torch.from_numpy(deterministic_weights.values_for(published, tuple(value.shape)))
    torch.save(state, folder / "weights.pth")
    return str(folder / "weights.pth")


class SmallNoresqaFrames(NoresqaFrames):
    """The feature with a small network."""

    @classmethod
    def _architecture(cls):
        return NoresqaNet(POST_NORM)


def write_noresqa(folder):
    """The weights of the small network under the published names, and one that only training used."""
    state = {"main_model.ssl_model.final_proj.bias": torch.zeros(3), "preference.linear1.bias": torch.zeros(1)}
    for inner, value in SmallNoresqaFrames._architecture().state_dict().items():
        name = inner.replace("encoder.", "main_model.ssl_model.", 1) if inner.startswith("encoder.") else inner
        state[name] = torch.from_numpy(deterministic_weights.values_for(name, tuple(value.shape)))
    torch.save({"state_dict": state}, folder / "noresqa.pth")
    return str(folder / "noresqa.pth")


def small_squim_subjective():
    """torchaudio's network of SQUIM Subjective over a small encoder."""
    from torchaudio.models import SquimSubjective, wav2vec2_model
    from torchaudio.models.squim.subjective import Predictor

    convolutions = [(32, 10, 5), *[(32, 3, 2)] * 4, *[(32, 2, 2)] * 2]
    encoder = wav2vec2_model(
        "group_norm", convolutions, False, 48, 0.0, 16, 4, 2, 4, 0.0, 96, 0.0, 0.0, False, 0.0, None
    )
    return SquimSubjective(encoder, torch.nn.Linear(48, 32), Predictor(64, 5))


class SmallSquimFrames(SquimFrames):
    """The feature with a small network."""

    @classmethod
    def _architecture(cls):
        from codec_bench.networks.squim import SquimSubjectiveNet

        return SquimSubjectiveNet(small_squim_subjective())


def write_squim_frames(folder):
    """A small SQUIM Subjective in the layout of the published file."""
    torch.save(standing_in(small_squim_subjective()).state_dict(), folder / "squim.pth")
    return str(folder / "squim.pth")


def scoreq_names(state, prefix):
    """The tensors under the names of a published file, with the layer that only training uses."""
    named = {name if name.startswith("mos_layer") else prefix + name: value for name, value in state.items()}
    return named | {f"{prefix}embedding_layer.1.{item}": torch.zeros(1) for item in ("weight", "bias")}


def write_scoreq(folder, *, rates):
    """A small SCOREQ in the layout of the published files."""
    from codec_bench.networks.scoreq import ScoreqNet

    state = standing_in(ScoreqNet(BASE, rates=rates)).state_dict()
    named = scoreq_names(state, "pt_model." if rates else "")
    path = folder / ("adapt_nr_telephone.pt" if rates else "fixed_nmr_telephone.pt")
    torch.save(named, path)
    return str(path)


UNITS = EncoderConfig("group_norm", 32, 12, 4, 48, False, conv_layers=CONVS, conv_pos=16, conv_pos_groups=4)


class SmallUnits(HubertUnits):
    """The feature with a small network, which has as many blocks as the published one."""

    def _architecture(self):
        return UNITS


def small_hubert():
    """A HuBERT of transformers in the architecture of `UNITS`, with stand-in weights."""
    config = transformers.HubertConfig(
        hidden_size=UNITS.width, num_hidden_layers=UNITS.layers, num_attention_heads=UNITS.heads,
        intermediate_size=UNITS.feed_forward, conv_dim=[channels for channels, _, _ in CONVS],
        num_conv_pos_embeddings=UNITS.conv_pos,
        num_conv_pos_embedding_groups=UNITS.conv_pos_groups,
    )  # fmt: skip
    return standing_in(transformers.HubertModel(config))


def write_units(folder, clusters=200):
    """A folder with a small HuBERT in the layout of the published one, and a k-means that scikit-learn and joblib
    wrote.
    """
    import joblib
    import numpy as np
    from sklearn.cluster import KMeans

    net = small_hubert()
    with torch.inference_mode():  # the clusters lie where frames do, so that they tell frames apart
        states = net(
            torch.randn(1, 240 * clusters, generator=torch.Generator().manual_seed(1)), output_hidden_states=True
        ).hidden_states
    frames = torch.cat([states[layer][0, : clusters // 2] for layer in (6, 11)])
    state = net.state_dict()
    for ours, theirs in (
        ("original0", "weight_g"),
        ("original1", "weight_v"),
    ):  # the published file is older than these names
        state[f"encoder.pos_conv_embed.conv.{theirs}"] = state.pop(
            f"encoder.pos_conv_embed.conv.parametrizations.weight.{ours}"
        )
    torch.save(state, folder / "pytorch_model.bin")
    means = KMeans(clusters)
    means.cluster_centers_ = np.ascontiguousarray(frames.numpy())
    means._n_threads = 1
    joblib.dump(means, folder / "km.bin", protocol=3)
    return str(folder)


class SmallWvmos(Wvmos):
    """The feature with a small network."""

    def _architecture(self):
        return UNITS


class SmallAudioSeal(AudioSeal):
    """The feature with a small network."""

    @classmethod
    def _architecture(cls):
        from codec_bench.networks.audioseal import AudioSealNet

        return AudioSealNet(4, 8)


def write_audioseal(folder, shapes, *, old=False):
    """A small detector of AudioSeal in the layout of the published file, by the names of the package or by those before
    0.2.
    """
    state = {name: torch.from_numpy(value) for name, value in deterministic_weights.state_dict_of(shapes).items()}
    for value in state.values():
        if value.ndim == 3:
            value *= 2
    state["detector.1.weight"] *= 8
    if old:  # with gains and directions, as trained
        for name in [name for name in state if name.endswith("inner_conv.weight")]:
            weight, stem = state.pop(name), name.removesuffix("weight").replace(".inner_conv.", ".")
            state[f"{stem}weight_g"] = weight.flatten(1).norm(dim=1)[:, None, None]
            state[f"{stem}weight_v"] = 3 * weight
        state = {name.replace(".inner_conv.", "."): value for name, value in state.items()}
    torch.save({"model": state}, folder / "detector_base.pth")
    return str(folder / "detector_base.pth")


def small_wvmos():
    """The network of WV-MOS over transformers' wav2vec 2.0 in the architecture of `UNITS`, with stand-in weights."""
    from torch import nn

    config = transformers.Wav2Vec2Config(
        hidden_size=UNITS.width, num_hidden_layers=UNITS.layers, num_attention_heads=UNITS.heads,
        intermediate_size=UNITS.feed_forward, conv_dim=[channels for channels, _, _ in CONVS],
        num_conv_pos_embeddings=UNITS.conv_pos,
        num_conv_pos_embedding_groups=UNITS.conv_pos_groups,
    )  # fmt: skip
    net = nn.Module()
    net.encoder = transformers.Wav2Vec2Model(config)
    net.dense = nn.Sequential(nn.Linear(UNITS.width, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 1))
    return standing_in(net)


def write_wvmos(folder):
    """A small WV-MOS in the layout of the published file, which a training program wrote."""
    state = {f"model.{name}": value for name, value in small_wvmos().state_dict().items()}
    torch.save({"state_dict": state, "epoch": 3}, folder / "wav2vec2.ckpt")
    return str(folder / "wav2vec2.ckpt")


class SmallAudiobox(Audiobox):
    """The feature with a small network."""

    def _architecture(self):
        return WAVLM


def write_audiobox(folder):
    """A small Audiobox in the layout of the published folder."""
    from safetensors.torch import save_file

    from codec_bench.features.audiobox import settings
    from codec_bench.networks.audiobox import AudioboxNet

    (folder / "config.json").write_text(json.dumps(AESTHETICS), "utf-8")
    net = standing_in(AudioboxNet(WAVLM, settings(folder / "config.json")[0]))
    save_file(net.state_dict(), folder / "model.safetensors")
    return str(folder)


def dnsmos_pro_tensors():
    """The tensors of a DNSMOS Pro of noise, in the order of the published files."""
    from codec_bench.networks.dnsmos_pro import LAYOUT

    generator = torch.Generator().manual_seed(4)
    tensors = []
    for name, shape in LAYOUT:
        if "num" in name:
            tensors.append(torch.tensor(7))
        elif "var" in name:
            tensors.append(0.5 + torch.rand(shape, generator=generator))
        else:
            fan_in = max(1, torch.Size(shape[1:]).numel())
            tensors.append(fan_in**-0.5 * torch.randn(shape, generator=generator))
    return tensors


def write_dnsmos_pro(folder):
    """A DNSMOS Pro of noise in the layout of the published files: an archive of TorchScript,
    whose program is not read.
    """
    path = folder / "dnsmos_pro_nisqa.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model_best/data.pkl", b"a program")
        for index, tensor in enumerate(dnsmos_pro_tensors()):
            archive.writestr(f"model_best/data/{index}", tensor.numpy().tobytes())
    return str(path)


class SmallCamPlusPlus(CamPlusPlusSpeaker):
    """The feature with a network small enough for every test."""

    def _architecture(self):
        from codec_bench.networks.campplus import CamConfig, CamPlusPlus

        return CamPlusPlus(CamConfig(16, 4, 16, 8, 2, (2, 3, 2), embedding=12))


class SmallERes2Net(ERes2NetSpeaker):
    """The feature with a network small enough for every test."""

    def _architecture(self):
        from codec_bench.networks.eres2net import ERes2Net, ERes2NetConfig

        return ERes2Net(ERes2NetConfig(16, 8, (1, 1, 2, 1), embedding=12))


class SmallWespeaker(WespeakerResnet34):
    """The feature with a network small enough for every test."""

    def _architecture(self):
        from codec_bench.networks.wespeaker import ResNet, ResNetConfig

        return ResNet(ResNetConfig(16, 8, (1, 1, 2, 1), 12))


class SmallReDimNet(ReDimNetB5):
    """The feature with a network small enough for every test."""

    def _architecture(self):
        from codec_bench.networks.redimnet import ReDimNet, ReDimNetConfig, ReDimNetStage

        return ReDimNet(
            ReDimNetConfig(
                12, 8, 4, 240, (ReDimNetStage(1, 1, 2, 4), ReDimNetStage(2, 2, 1, 8), ReDimNetStage(3, 1, 2, 4)), 12
            )
        )


def write_redimnet(folder):
    """A small ReDimNet in the layout of the published files."""
    from codec_bench.features.speakers.redimnet import FRONT_END

    state = deterministic_weights.stand_in(SmallReDimNet._architecture(None))
    path = folder / "b5-vox2-ft_lm.pt"
    torch.save({"model_config": {"F": 12}, "state_dict": state | {name: torch.zeros(1) for name in FRONT_END}}, path)
    return str(path)


def bare(feature, path):
    """Writes stand-in weights for a feature's network as tensors by name, and returns the path."""
    torch.save(deterministic_weights.stand_in(feature._architecture(None)), path)
    return str(path)


class SmallEmotion2vec(Emotion2vecPlusLarge):
    """The feature with a network small enough for every test."""

    def _architecture(self):
        from codec_bench.networks.emotion2vec import Emotion2vecConfig

        return Emotion2vecConfig(48, 6, 96, 2, 3, CONVS, 3, 5, 4, 4)


def write_emotion2vec(folder):
    """A small emotion2vec+ in the layout of the published file, and what else training left there."""
    from codec_bench.networks.emotion2vec import Emotion2vecNet

    state = deterministic_weights.stand_in(Emotion2vecNet(SmallEmotion2vec._architecture(None)))
    scale = "d2v_model.modality_encoders.AUDIO.alibi_scale"
    state[scale] = 3 * state[scale].abs()  # it is positive in a trained network, and distance counts
    path = folder / "model.pt"
    torch.save({"model": state, "last_optimizer_state": {"step": 7}}, path)
    return str(path)


def write_learned(folder, network):
    """Stand-in weights of a network of the table of scorers, in the layout of the published file; None for one in an
    installed package.
    """
    if hasattr(load_attribute(network.path), "translated"):
        return None
    state = standing_in(load_attribute(network.path)()).state_dict()
    torch.save(state if network.key is None else {network.key: state}, folder / "learned.pt")
    return str(folder / "learned.pt")


def write_nisqa(folder, name):
    """A NISQA with stand-in weights in the layout of the published file.

    It has the size of the published one, which is small.
    """
    from codec_bench.features.nisqa import MOS_ONLY, SCORES
    from codec_bench.networks.nisqa import NisqaNet, NisqaTtsNet

    net = NisqaTtsNet() if name == "nisqa-tts" else NisqaNet(1 if name.endswith(MOS_ONLY) else len(SCORES))
    state = standing_in(net).state_dict()
    for key, value in state.items():
        if key.startswith("pool") and value.numel() == 1 and "linear2" not in key:
            value += 3  # the middle of the scale
    path = folder / f"{name}.tar"
    torch.save({"args": {"name": name}, "model_state_dict": state}, path)
    return str(path)


class SmallTtsds2Wav2vec2(Ttsds2Wav2vec2):
    """The feature with a small network."""

    def _architecture(self):
        return UNITS


def write_ttsds2_wav2vec2(folder):
    """A folder with a small wav2vec 2.0 and its letters, in the layout of the published one."""
    config = transformers.Wav2Vec2Config(
        vocab_size=5, hidden_size=UNITS.width, num_hidden_layers=UNITS.layers, num_attention_heads=UNITS.heads,
        intermediate_size=UNITS.feed_forward, conv_dim=[channels for channels, _, _ in CONVS],
        num_conv_pos_embeddings=UNITS.conv_pos,
        num_conv_pos_embedding_groups=UNITS.conv_pos_groups,
    )  # fmt: skip
    standing_in(transformers.Wav2Vec2ForCTC(config)).save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(return_attention_mask=False).save_pretrained(folder)
    (folder / "vocab.json").write_text("{}", "utf-8")
    return str(folder)


def write_ttsds2_whisper(folder):
    """A folder with a small Whisper that hears 30 s, in transformers' layout."""
    config = transformers.WhisperConfig(
        vocab_size=60, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=1,
        decoder_attention_heads=1,
        encoder_ffn_dim=24, decoder_ffn_dim=24, max_target_positions=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    standing_in(transformers.WhisperForConditionalGeneration(config)).save_pretrained(folder)
    return str(folder)


def write_clap(folder, *, vocabulary=20, **audio):
    """A folder with a small CLAP, its half for texts of so many words too, in transformers' layout."""
    actual = {
        "patch_embeds_hidden_size": 16, "hidden_size": 128, "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 4, 8],
        "projection_dim": 24,
    }  # fmt: skip
    text = {
        "vocab_size": vocabulary, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 12, "projection_dim": 24,
    }  # fmt: skip
    config = transformers.ClapConfig(audio_config={**actual, **audio}, text_config=text, projection_dim=24)
    net = transformers.ClapModel(config)
    net.load_state_dict({
        name: torch.from_numpy(deterministic_weights.values_for(name, tuple(value.shape))) if value.ndim
        and value.is_floating_point() else value
        for name, value in net.state_dict().items()
    })  # fmt: skip
    net.save_pretrained(folder)
    return str(folder)


class SmallUtmosV2(UtmosV2):
    """The feature with a small network."""

    def _architecture(self):
        from codec_bench.networks.efficientnet_v2 import EfficientNetStage
        from codec_bench.networks.utmosv2 import UtmosV2Net

        stages = (
            EfficientNetStage("plain", 1, 1, 1, 8),
            EfficientNetStage("fused", 2, 2, 2, 8),
            EfficientNetStage("separable", 2, 2, 2, 12),
        )
        return UtmosV2Net(
            EncoderConfig("group_norm", 48, 3, 4, 96, False, SMALL_CONVS, conv_pos=16, conv_pos_groups=3), stages, 8
        )


def write_utmosv2(folder, fold=0):
    """A small fold of UTMOSv2 in the layout of the published files: transformers' names in the encoder."""
    encoder = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(**SMALL_WAV2VEC2))
    shapes = {f"ssl.encoder.model.{name}": tuple(value.shape) for name, value in encoder.state_dict().items()}
    actual = SmallUtmosV2._architecture(None).state_dict()
    shapes |= {name: tuple(value.shape) for name, value in actual.items() if not name.startswith("ssl.encoder.")}
    state = {name: torch.from_numpy(value) for name, value in deterministic_weights.state_dict_of(shapes).items()}
    state["fc.weight"] *= 10  # so that signals differ
    state["fc.bias"] += 6 + fold  # scores of about 3, and others for each fold
    path = folder / f"fold{fold}_s42_best_model.pth"
    torch.save(state, path)
    return str(path)
