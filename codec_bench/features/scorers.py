"""The table of learned scorers: networks, their scores and sources.

`codec_bench.metrics.predicted` makes a metric of every output. A row with a `ScorerNetwork` becomes a feature in
`codec_bench.features.learned`. This module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OPINION = (1.0, 5.0)
"""The range of an opinion score."""


@dataclass(frozen=True, slots=True)
class ScorerNetwork:
    """A network over the windows of a signal. Scores are means over the windows.

    Args:
        path: `package.module:Class`. The class has `cut` (a signal's windows), `room` (the padded size of a window) and
            `at_once` (the most samples of a pass on a CPU and on a GPU), and may have `translated`, which renames
            published tensors.
        weights: the entry of the catalogue. key: of the weights in the published file.
        protocol: exact id of the measurement.
        title: the name in sentences. about: the description that `codec-bench show` prints before the arguments.
        outputs: the names of the numbers, in order. windows: the result's key of the number of windows.
        least: the samples of the shortest signal.
        batch_s: padded seconds of audio in the first batch.
        most_s: the seconds of the longest signal; 0 without a limit.
        draws: whether the class has `draw`, whose tensor (a row per seed) is an input too.
    """

    path: str
    weights: str
    key: str | None
    protocol: str
    title: str
    about: str
    outputs: tuple[str, ...]
    windows: str
    least: int
    batch_s: float
    most_s: float = 0.0
    draws: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a network that is a score.

    Args:
        key: its name in the feature's result.
        description: one line with direction and range. more: further facts for readers.
        higher_is_better: None where neither direction is better.
    """

    key: str
    description: str
    more: str = ""
    higher_is_better: bool | None = True


@dataclass(frozen=True, slots=True)
class ScorerRow:
    """A row.

    Args:
        feature: the feature's name. scores: its outputs, by the name of the metric.
        paper, source: the definition, and the reference implementation with its tolerance.
        notes: both, and the arguments, as `codec-bench show` prints them.
        topic: a key of `codec_bench.metrics.TOPICS`. group: the name that requests the scores together.
        apart: whether a score is a distance between the embeddings of estimate and reference.
        named: whether the protocol begins with the metric's name.
        detail: the result's key that is recorded next to a score.
        variants: whether the scores have a variant in brackets.
        languages: base codes of the supported languages; empty for any. The variant `any-language` lifts the limit.
        trained_on: why other languages are refused.
    """

    feature: str
    scores: Mapping[str, Output]
    paper: str
    source: str
    notes: str
    rate_hz: int = 16_000
    range: tuple[float | None, float | None] = OPINION
    unit: str = ""
    topic: str = "naturalness"
    group: str = ""
    apart: bool = False
    named: bool = False
    detail: str = ""
    variants: bool = False
    languages: tuple[str, ...] = ()
    trained_on: str = ""
    network: ScorerNetwork | None = field(default=None)


DNSMOS_SOURCE = "speechmos 0.0.1, to 1e-4"
NISQA_PAPER = "Mittag, Naderi, Chehadi, Moeller: NISQA: A Deep CNN-Self-Attention Model for Multidimensional Speech Quality Prediction with Crowdsourced Datasets, Interspeech 2021"
NISQA_SOURCE = "github.com/gabrielmittag/NISQA at fe84f0f, to 1e-4"
NISQA_NOTES = 'Paper: G. Mittag et al., "NISQA", Interspeech 2021. Reference implementation: github.com/gabrielmittag/NISQA at 48 kHz, to 1e-4.'
SCOREQ_PAPER = "Ragano, Skoglund, Hines: SCOREQ: Speech Quality Assessment with Contrastive Regression, NeurIPS 2024"
SQUIM_PAPER = "Kumar et al.: TorchAudio-Squim: Reference-less Speech Quality and Intelligibility Measures in TorchAudio, ICASSP 2023"
SQUIM = ScorerNetwork(
    "codec_bench.networks.squim:SquimNet",
    weights="squim-objective-dns2020",
    key=None,
    protocol="squim-objective/dns2020",
    title="SQUIM",
    outputs=("stoi", "pesq", "si_sdr"),
    windows="windows",
    least=64,
    batch_s=60.0,
    most_s=60.0,
    about="""STOI, wide-band PESQ and SI-SDR that SQUIM Objective predicts for a signal without a reference.

The signal at one level; a convolution, two dual-path recurrent blocks, and a transformer layer for each number. Each
signal passes whole and alone.

Result: `{"stoi": float, "pesq": float, "si_sdr": float, "windows": int}`.""",
)


def _ssl_mos(
    name: str, network: str, weights: str, title: str, about: str, paper: str, source: str, range: tuple[float | None, float | None]
) -> ScorerRow:  # fmt: skip
    """A row of SSL-MOS: one opinion score from a speech encoder whose frames are scored and averaged."""
    return ScorerRow(
        feature=name.replace("_", "-"),
        scores={name: Output("mos", f"{about} Higher is better.", "The mean over the frames of s3prl, one for each started 20 ms.")},
        paper=paper,
        source=source,
        notes=f"Paper: {paper}. Reference implementation: {source}.",
        range=range,
        network=ScorerNetwork(
            f"codec_bench.networks.ssl_mos:{network}", weights=weights, key=None, protocol=f"{name}/{weights}", title=title, outputs=("mos",),
            windows="windows", least=800, batch_s=240.0, most_s=120.0,
            about=f"{about} Higher is better.\n\nResult: `{{\"mos\": float, \"windows\": int}}`.",
        ),
    )  # fmt: skip


_MOS_BENCH = "Huang, Cooper, Toda: MOS-Bench: Benchmarking Generalization Abilities of Subjective Speech Quality Assessment Models, 2024, arXiv 2411.03715"
_SHEET = "github.com/unilight/sheet, to 1e-5"
_SINGMOS = "github.com/South-Twilight/SingMOS at 1554e86, to 1e-5"
SCORERS = (
    ScorerRow(
        feature="audiobox",
        scores={
            "audiobox_ce": Output("ce", "Content enjoyment: how much people would like to listen to it. Higher is better, 1 to 10."),
            "audiobox_cu": Output("cu", "Content usefulness: how well it would serve as material for other recordings. Higher is better, 1 to 10."),
            "audiobox_pc": Output("pc", "Production complexity: how much is going on in it. Neither more nor less is better, 1 to 10.", higher_is_better=None),
            "audiobox_pq": Output("pq", "Production quality: how well it is made technically. Higher is better, 1 to 10."),
        },
        paper="Tjandra et al.: Meta Audiobox Aesthetics: Unified Automatic Quality Assessment for Speech, Music, and Sound, 2025",
        source="github.com/facebookresearch/audiobox-aesthetics, to 5e-5",
        notes='Paper: A. Tjandra et al., "Meta Audiobox Aesthetics", 2025. Reference implementation: audiobox-aesthetics at 16 kHz, to 5e-5.',
        range=(1.0, 10.0), group="audiobox", named=True, detail="windows",
    ),
    *(
        ScorerRow(
            feature="squim", scores={name: output}, paper=SQUIM_PAPER, source="torchaudio 2.11 SQUIM_OBJECTIVE, to 1e-5",
            notes='Paper: A. Kumar et al., "TorchAudio-Squim", ICASSP 2023. Reference implementation: torchaudio 2.11, to 1e-5.',
            range=limits, unit=unit, group="squim", named=True, network=SQUIM if name == "squim_stoi" else None,
        )
        for name, output, limits, unit in (
            ("squim_stoi", Output("stoi", "The STOI that SQUIM predicts without a reference. Higher is better, 0 to 1."), (0.0, 1.0), ""),
            ("squim_pesq", Output("pesq", "The wide-band PESQ that SQUIM predicts without a reference. Higher is better, 1 to 4.64."), (1.0, 4.65), "MOS"),
            ("squim_si_sdr", Output("si_sdr", "The SI-SDR in dB that SQUIM predicts without a reference. Higher is better."), (None, None), "dB"),
        )
    ),
    ScorerRow(
        feature="emo-vad",
        scores={
            "emo_arousal": Output("arousal", "How excited the estimate's speech is, nominally 0 to 1. Neither more nor less is better.", higher_is_better=None),
            "emo_dominance": Output("dominance", "How dominant the estimate's speech is, nominally 0 to 1. Neither more nor less is better.", higher_is_better=None),
            "emo_valence": Output("valence", "How positive the estimate's speech is, nominally 0 to 1. Neither more nor less is better.", higher_is_better=None),
        },
        paper="Wagner et al.: Dawn of the Transformer Era in Speech Emotion Recognition: Closing the Valence Gap, TPAMI 2023",
        source="EmotionModel of the model card over transformers 5, to 1e-5",
        notes='Paper: J. Wagner et al., "Dawn of the Transformer Era in Speech Emotion Recognition", TPAMI 2023. Reference\n'
        "implementation: `EmotionModel` of the model card over transformers 5, to 1e-5.",
        range=(None, None), topic="emotion", group="emo_vad", named=True,
        network=ScorerNetwork(
            "codec_bench.networks.emo_vad:EmoVadNet", weights="emo-vad-msp-dim", key=None, protocol="emo-vad/msp-dim/1", title="the emotion network",
            outputs=("arousal", "dominance", "valence"), windows="windows", least=400, batch_s=240.0, most_s=120.0,
            about="""Arousal, dominance and valence of a signal, as wav2vec 2.0 large (12 layers) predicts them. Nominally 0 to 1.

The signal at zero mean and unit variance; the mean of the last hidden state over time; two linear layers with a tanh
between. Batches do not change the values.

Result: `{"arousal": float, "dominance": float, "valence": float, "windows": int}`.""",
        ),
    ),
    ScorerRow(
        feature="aasist",
        scores={
            "asvspoof": Output(
                "genuine",
                "The probability that the estimate is genuine speech and no synthesis, as AASIST sees it. Higher is "
                "better, 0 to 1.",
                "Trained on synthesis and conversion of 2019. Newer systems and codecs were not among them.",
            )
        },
        paper="Jung et al.: AASIST: Audio Anti-Spoofing Using Integrated Spectro-Temporal Graph Attention Networks, ICASSP 2022",
        source="github.com/clovaai/aasist at a04c986, to 1e-5",
        notes='Paper: J. Jung et al., "AASIST", ICASSP 2022. Reference implementation: github.com/clovaai/aasist at a04c986, to 1e-5.',
        range=(0.0, 1.0),
        network=ScorerNetwork(
            "codec_bench.networks.aasist:AasistNet", weights="aasist", key=None, protocol="asvspoof/aasist-2019-la/whole-signal", title="AASIST",
            outputs=("genuine",), windows="windows", least=2315, batch_s=60.0, most_s=60.0,
            about="""The probability that a signal is genuine speech, as AASIST sees it, 0 to 1.

Sinc filters, six residual blocks, and attention over a graph of bands and times. Each signal passes whole and alone, as
in VERSA; the authors' evaluation cuts or repeats it to 4 s.

Result: `{"genuine": float, "windows": int}`.""",
        ),
    ),
    ScorerRow(
        feature="auto-att",
        scores={
            "auto_att": Output(
                "score",
                "How human the estimate's speech sounds to Auto-ATT, from its first 30 s. Higher is better, 1 to 3.",
                "A Qwen2-Audio trained on listeners' verdicts of Mandarin speech rates it as Good, Fair or Bad; the score is\n"
                "3, 2 and 1, weighted by the probabilities of these words.",
            )
        },
        paper="Wang et al.: Audio Turing Test: Benchmarking the Human-likeness of Large Language Model-based Text-to-Speech Systems in Chinese, 2025",
        source="github.com/AudioTuring/Auto-ATT-Inference at eff2e49 over transformers 5, to 1e-5",
        notes='Paper: X. Wang et al., "Audio Turing Test", 2025. Reference implementation: github.com/AudioTuring/Auto-ATT-Inference over\n'
        "transformers 5 in float32, to 1e-5.\n\n"
        "Args:\n    variant: `any-language` for a number also where the language is not Mandarin.\n    point: `bfloat16`, in which the published "
        "program computes, or `tf32`; None for float32.\n\nRaises:\n    UserError: no such variant or precision.",
        range=(1.0, 3.0), detail="heard_s", variants=True, languages=("zh",),
        trained_on="Auto-ATT was trained on Mandarin speech",
    ),
    ScorerRow(
        feature="dnsmos",
        scores={
            "dnsmos_sig": Output("sig", "Quality of the speech itself: how little the voice is distorted (P.835 SIG). Higher is better, 1 to 5."),
            "dnsmos_bak": Output("bak", "Quality of the background: how little noise intrudes (P.835 BAK). Higher is better, 1 to 5."),
            "dnsmos_ovrl": Output("ovrl", "Overall quality (P.835 OVRL). Higher is better, 1 to 5."),
        },
        paper="Reddy, Gopal, Cutler: DNSMOS P.835: A Non-Intrusive Perceptual Objective Speech Quality Metric to Evaluate Noise Suppressors, ICASSP 2022",
        source=DNSMOS_SOURCE,
        notes='Paper: C. K. A. Reddy et al., "DNSMOS P.835", ICASSP 2022. Reference implementation: speechmos, to 1e-4.',
        group="dnsmos", detail="windows", variants=True,
    ),
    ScorerRow(
        feature="dnsmos",
        scores={"dnsmos_p808": Output("p808", "Overall quality as a crowd would rate it under P.808, predicted by another network. Higher is better, 1 to 5.")},
        paper="Reddy, Gopal, Cutler: DNSMOS: A Non-Intrusive Perceptual Objective Speech Quality Metric to Evaluate Noise Suppressors, ICASSP 2021",
        source=DNSMOS_SOURCE,
        notes='Paper: C. K. A. Reddy et al., "DNSMOS", ICASSP 2021. Reference implementation: speechmos, to 1e-4.',
        group="dnsmos", detail="windows", variants=True,
    ),
    ScorerRow(
        feature="nisqa",
        scores={"nisqa_mos": Output("mos", "The opinion score that NISQA predicts for transmitted speech. Higher is better; nominally 1 to 5.")},
        paper=NISQA_PAPER, source=NISQA_SOURCE,
        notes=NISQA_NOTES + "\n\nArgs:\n    variant: None, or `mos-only` for the network that was trained for the opinion score alone.\n\n"
        "Raises:\n    UserError: no such variant.",
        rate_hz=48_000, group="nisqa", named=True, detail="windows", variants=True,
    ),
    ScorerRow(
        feature="nisqa",
        scores={
            "nisqa_noisiness": Output("noisiness", "How little noise there is, background, circuit or coding noise, as NISQA predicts it. Higher is better; nominally 1 to 5."),
            "nisqa_coloration": Output("coloration", "How natural the timbre is, rather than muffled, thin or metallic, as NISQA predicts it. Higher is better; nominally 1 to 5."),
            "nisqa_discontinuity": Output("discontinuity", "How free of gaps and jumps the signal is, as NISQA predicts it. Higher is better; nominally 1 to 5."),
            "nisqa_loudness": Output("loudness", "How suitable the loudness is, neither too soft nor too loud, as NISQA predicts it. Higher is better; nominally 1 to 5."),
        },
        paper=NISQA_PAPER, source=NISQA_SOURCE, notes=NISQA_NOTES, rate_hz=48_000, group="nisqa", named=True, detail="windows",
    ),
    ScorerRow(
        feature="sigmos",
        scores={
            "sigmos_ovrl": Output("overall", "The overall opinion score that SIGMOS predicts. Higher is better; nominally 1 to 5."),
            "sigmos_sig": Output("signal", "How good the speech itself sounds, leaving the background aside, as SIGMOS predicts it. Higher is better; nominally 1 to 5."),
            "sigmos_noise": Output("noise", "How little noise there is, as SIGMOS predicts it. Higher is better; nominally 1 to 5."),
            "sigmos_col": Output("coloration", "How natural the timbre is, as SIGMOS predicts it. Higher is better; nominally 1 to 5."),
            "sigmos_disc": Output("discontinuity", "How free of gaps and jumps the signal is, as SIGMOS predicts it. Higher is better; nominally 1 to 5."),
            "sigmos_loud": Output("loudness", "How suitable the loudness is, as SIGMOS predicts it. Higher is better; nominally 1 to 5."),
            "sigmos_reverb": Output("reverb", "How little reverberation there is, as SIGMOS predicts it. Higher is better; nominally 1 to 5."),
        },
        paper="Naderi, Cutler, Ristea: Multi-dimensional Speech Quality Assessment in Crowdsourcing, ICASSP 2024",
        source="github.com/microsoft/SIG-Challenge sigmos.py with ONNX Runtime at 48 kHz, to 1e-5",
        notes="Paper: B. Naderi et al., ICASSP 2024. Reference implementation: github.com/microsoft/SIG-Challenge at 48 kHz, to 1e-5.",
        rate_hz=48_000, group="sigmos", named=True,
    ),
    ScorerRow(
        feature="distillmos",
        scores={
            "distillmos": Output(
                "mos",
                "How good the estimate sounds to listeners, as DistillMOS predicts it without a reference. Higher is "
                "better; 1 to 5.",
                "`detail` holds the number of crops of 7.68 s that the score is a mean over.",
            )
        },
        paper="Stahl, Gamper: Distillation and Pruning for Scalable Self-Supervised Representation-Based Speech Quality Assessment, ICASSP 2025",
        source="distillmos 0.9.1, to 1e-4",
        notes='Paper: B. Stahl, H. Gamper, "Distillation and Pruning for Scalable Self-Supervised Representation-Based Speech Quality\n'
        'Assessment", ICASSP 2025. Reference implementation: distillmos 0.9.1, to 1e-4.',
        detail="crops",
        network=ScorerNetwork(
            "codec_bench.networks.distillmos:DistillMosNet", weights="distillmos-v7", key="model", protocol="distillmos/v7",
            title="DistillMOS", outputs=("mos",), windows="crops", least=320, batch_s=120.0,
            about="""The opinion score that DistillMOS gives a signal. Higher is better; 1 to 5.

Crops of 7.68 s at equal steps of at most one second, from the signal's start to its end; a shorter signal is padded with
silence. Each crop is divided by its largest absolute value. Six convolutions over the compressed complex spectrum, a
transformer of seven layers and attention pooling give its score. The result is the mean over crops. Batches do not
change it.

Result: `{"mos": float, "crops": int}`.""",
        ),
    ),
    ScorerRow(
        feature="dnsmos-pro",
        scores={
            "dnsmos_pro": Output(
                "mean",
                "The mean of the opinion score that DNSMOS Pro predicts for the estimate. Higher is better; nominally "
                "1 to 5.",
                "`detail` holds the variance, the network's uncertainty about the item, not that of the mean over items.",
            )
        },
        paper="Cumlin, Liang, Ungureanu, Reddy, Schuldt, Chatterjee: DNSMOS Pro: A Reduced-Size DNN for Probabilistic MOS of Speech, Interspeech 2024",
        source="github.com/fcumlin/DNSMOSPro at f9da568, to 1e-4",
        notes='Paper: F. Cumlin et al., "DNSMOS Pro: A Reduced-Size DNN for Probabilistic MOS of Speech", Interspeech 2024. Reference\n'
        "implementation: github.com/fcumlin/DNSMOSPro at f9da568, to 1e-4.\n\nArgs:\n"
        "    variant: the data set that the network was trained on: `nisqa` (also if None; transmitted speech), `bvcc` or `vcc2018`\n"
        "        (synthetic and converted speech).\n\nRaises:\n    UserError: no such network.",
        detail="variance", variants=True,
    ),
    ScorerRow(
        feature="nisqa-tts",
        scores={"nisqa_tts": Output("mos", "How natural synthetic speech sounds, as NISQA-TTS predicts it. Higher is better; nominally 1 to 5.")},
        paper="Mittag, Moeller: Deep Learning Based Assessment of Synthetic Speech Naturalness, Interspeech 2020",
        source=NISQA_SOURCE,
        notes='Paper: G. Mittag, S. Moeller, "Deep Learning Based Assessment of Synthetic Speech Naturalness", Interspeech 2020. Reference\n'
        "implementation: github.com/gabrielmittag/NISQA at 48 kHz, to 1e-4.",
        rate_hz=48_000, detail="windows",
    ),
    ScorerRow(
        feature="plcmos",
        scores={
            "plcmos": Output(
                "mos",
                "How good speech with concealed packet losses sounds, as PLCMOS predicts it without a reference. "
                "Higher is better; 1 to 5.",
                "Trained on ratings of speech whose lost packets were concealed. The score is the mean over 15 raters that are drawn by the\n"
                "seed of the run and the id of the item. `scatter` in the detail is its standard error over raters.",
            )
        },
        paper="Diener, Purin, Sootla, Saabas, Aichner, Cutler: PLCMOS: A Data-driven Non-intrusive Metric for The Evaluation of Packet Loss Concealment Algorithms, Interspeech 2023",
        source="speechmos 0.0.1, with the same raters, to 1e-4", detail="scatter",
        notes='Paper: L. Diener et al., "PLCMOS", Interspeech 2023. Reference implementation: speechmos 0.0.1 (PLCMOS v2), with the same\n'
        "raters, to 1e-4.",
        network=ScorerNetwork(
            "codec_bench.networks.plcmos:PlcmosNet", weights="plcmos-v2", key=None, protocol="plcmos/v2/15-raters",
            title="PLCMOS", outputs=("mos", "scatter"), windows="windows", least=1281, batch_s=240.0, most_s=120.0, draws=True,
            about="""The opinion score that PLCMOS v2 gives a signal. Higher is better; 1 to 5.

A log spectrum of 32 ms every 16 ms, three convolutions, two bidirectional recurrent layers, and a head that also takes a
point for a rater. The score is the mean over 15 raters, normal draws of NumPy's generator with a seed of the item;
`scatter` is its standard error over raters. Each signal passes whole, and batches do not change the scores.

Result: `{"mos": float, "scatter": float, "windows": int}`.""",
        ),
    ),
    ScorerRow(
        feature="scoreq",
        scores={
            "scoreq": Output(
                "scoreq",
                "The opinion score that SCOREQ predicts for the estimate alone. Higher is better; nominally 1 to 5.",
                "Trained on listening tests of people's speech with noise, codecs and lost packets (`natural`), or of generated speech\n"
                "(`synthetic`). A score outside 1 to 5 is possible and stays as it is.",
            )
        },
        paper=SCOREQ_PAPER, source="github.com/alessandroragano/scoreq, to 2e-5",
        notes='Paper: A. Ragano, J. Skoglund, A. Hines, "SCOREQ", NeurIPS 2024. Reference implementation:\n'
        "github.com/alessandroragano/scoreq at 16 kHz, to 2e-5.",
        named=True, variants=True,
    ),
    ScorerRow(
        feature="nomad-embedding",
        scores={
            "nomad": Output(
                "embedding",
                "The distance of the estimate from the reference in NOMAD's space. Lower is better; 0 is the same "
                "point, 2 the opposite one.",
                "Each signal passes as a whole, so the two may have different lengths.",
                higher_is_better=False,
            )
        },
        paper="Ragano, Skoglund, Hines: NOMAD: Unsupervised Learning of Perceptual Embeddings for Speech Enhancement and Non-matching Reference Audio Quality Assessment, ICASSP 2024",
        source="github.com/alessandroragano/nomad, to 1e-5",
        notes='Paper: A. Ragano, J. Skoglund, A. Hines, "NOMAD", ICASSP 2024. Reference implementation:\n'
        "github.com/alessandroragano/nomad at 16 kHz with one reference, the item's own, to 1e-5.",
        range=(0.0, 2.0), topic="fidelity", apart=True,
    ),
    ScorerRow(
        feature="scoreq-embedding",
        scores={
            "scoreq_ref": Output(
                "embedding",
                "The distance of the estimate from the reference in SCOREQ's space. Lower is better; 0 is the same "
                "point, 2 the opposite one.",
                "Each signal passes as a whole, so the two may have different lengths.",
                higher_is_better=False,
            )
        },
        paper=SCOREQ_PAPER, source="github.com/alessandroragano/scoreq, to 1e-5",
        notes='Paper: A. Ragano, J. Skoglund, A. Hines, "SCOREQ", NeurIPS 2024 (the mode with a reference). Reference implementation:\n'
        "github.com/alessandroragano/scoreq at 16 kHz, to 1e-5.",
        range=(0.0, 2.0), topic="fidelity", apart=True, named=True, variants=True,
    ),
    _ssl_mos(
        "sheet_ssqa", "SheetNet", "sheet-all7-mdf-2337", "SHEET", "The opinion score that SHEET gives speech: wav2vec 2.0 base, trained on seven sets of MOS-Bench, 1 to 5.",
        _MOS_BENCH, f"{_SHEET} (v0.1.0, `default`)", OPINION,
    ),
    _ssl_mos(
        "sheet_ssqa_wavlm", "SheetWavlmNet", "sheet-all8-wavlm-large-1337", "SHEET", "The opinion score that SHEET gives speech: WavLM large, trained on eight sets of MOS-Bench, 1 to 5.",
        _MOS_BENCH, f"{_SHEET} (7ea80cc, `sheet_ssqa`)", OPINION,
    ),
    _ssl_mos(
        "singmos_v1", "SingMosNet", "singmos-v1", "SingMOS", "The opinion score that SingMOS gives singing: wav2vec 2.0 base, nominally 1 to 5.",
        "Tang, Shi, Wu, Jin: SingMOS: An extensive Open-Source Singing Voice Dataset for MOS Prediction, 2024, arXiv 2406.10911", _SINGMOS, (None, None),
    ),
    _ssl_mos(
        "singmos_pro", "SingMosProNet", "singmos-pro", "SingMOS-Pro", "The opinion score that SingMOS-Pro gives singing: wav2vec 2.0 large, 1 to 5.",
        "Tang et al.: SingMOS-Pro: A Comprehensive Benchmark for Singing Quality Assessment, 2025, arXiv 2510.01812", _SINGMOS, OPINION,
    ),
    ScorerRow(
        feature="utmos",
        scores={
            "utmos": Output(
                "utmos",
                "The predicted mean opinion score of the estimate's naturalness. Higher is better; nominally 1 to 5.",
                "It was trained on English. Speech in another language is refused, unless the variant `any-language` is used; its\n"
                "authors report no results for Chinese. The score is a mean over 20 ms frames, and `detail` holds their number.",
            )
        },
        paper="Saeki, Xin, Nakata, Koriyama, Takamichi, Saruwatari: UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022, Interspeech 2022",
        source="SpeechMOS 1.2.0 utmos22_strong, to 2e-5",
        notes='Paper: T. Saeki et al., "UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022", Interspeech 2022. Reference\n'
        "implementation: SpeechMOS 1.2.0 `utmos22_strong` at 16 kHz, to 2e-5.\n\nArgs:\n"
        "    variant: None for English (and for speech whose language is not known), or `any-language`.\n"
        "    point: `float16`, `bfloat16` or `tf32`, or None for float32.\n\nRaises:\n    UserError: no such variant or precision.",
        named=True, detail="frames", languages=("en",), trained_on="UTMOS22 was trained on English", variants=True,
    ),
    ScorerRow(
        feature="utmosv2",
        scores={
            "utmosv2": Output(
                "mos",
                "The opinion score of the estimate's naturalness that UTMOSv2 predicts. Higher is better; nominally 1 "
                "to 5.",
                "It was trained on ratings of synthetic speech. `detail` holds the number of draws of random crops that the score\n"
                "is a mean over. The draws depend on the estimate's samples alone, so a number does not change from run to run.",
            )
        },
        paper="Baba, Nakata, Saito, Saruwatari: The T05 System for The VoiceMOS Challenge 2024, SLT 2024",
        source="github.com/sarulab-speech/UTMOSv2 at cc2700d, with the same draws, to 1e-4",
        notes='Paper: K. Baba et al., "The T05 System for The VoiceMOS Challenge 2024", SLT 2024. Reference implementation:\n'
        "github.com/sarulab-speech/UTMOSv2 at cc2700d on a CPU, with the same draws, to 1e-4.\n\nArgs:\n"
        "    variant: None for what the reference's `predict` does by default (fold 0, one draw); `five-repetitions` for\n"
        "        five draws; `five-folds` for five folds with five draws each.\n\nRaises:\n    UserError: no such variant.",
        detail="draws", variants=True,
    ),
    ScorerRow(
        feature="wvmos",
        scores={
            "wvmos": Output(
                "mos",
                "The opinion score of the estimate's quality that WV-MOS predicts. Higher is better; nominally 1 to 5.",
                "Trained on the ratings of converted English speech of the Voice Conversion Challenge 2018. A score outside 1 to 5 is\n"
                "possible and stays as it is.",
            )
        },
        paper="Andreev, Alanov, Ivanov, Vetrov: HiFi++: A Unified Framework for Bandwidth Extension and Speech Enhancement, ICASSP 2023",
        source="github.com/AndreevP/wvmos at 68aaf26 over transformers 5, to 2e-5",
        notes='Paper: P. Andreev et al., "HiFi++", ICASSP 2023. Reference implementation: github.com/AndreevP/wvmos at 16 kHz, to 2e-5.\n\n'
        "Args:\n    variant: None.\n    point: `float16`, `bfloat16` or `tf32`, or None for float32.\n\nRaises:\n    "
        "UserError: no such variant or precision.",
    ),
)  # fmt: skip
"""In the order of the groups, then of the alphabet."""


def row_of(metric: str) -> ScorerRow:
    """Return the row of a learned metric."""
    return next(row for row in SCORERS if metric in row.scores)
