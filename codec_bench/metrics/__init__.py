"""Metrics, one family a file: cheap functions of signals and features.

Which file to open
    `base.py`       what every metric promises. A family is a file; the learned metrics are `predicted.py`, one for each
                    row of `codec_bench.features.scorers`.
    `command.py`    a metric that is a program, and the file that names it.
    `groups.py`     which metrics a name such as `quality` selects; the groups themselves are `GROUPS` and `TOPICS`
                    here.
    `costs.py`      how long a metric takes, as measured; `sensitivity.py` what moves it though a listener would not
                    mind. `words.py` reads the times of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from codec_bench.config import read_config
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.option import names
from codec_bench.config.registry import Registry, Spec, call_with_known
from codec_bench.features.scorers import SCORERS
from codec_bench.machine.process_state import build_preserving_torch
from codec_bench.messages.errors import MissingExtra, UserError
from codec_bench.metrics.base import Inputs, Metric

if TYPE_CHECKING:
    from codec_bench.weights import Checkpoint

TABLE = {
    "asv_eer": "codec_bench.metrics.asv_eer:AsvEer",
    "asv_eer_listed": "codec_bench.metrics.asv_eer:AsvEerListed",
    "bitrate": "codec_bench.metrics.bitrate:Bitrate",
    "cbak": "codec_bench.metrics.loizou:Cbak",
    "cd": "codec_bench.metrics.loizou:CepstralDistance",
    "cer": "codec_bench.metrics.error_rate:Cer",
    "clap_score": "codec_bench.metrics.clap_score:ClapScore",
    "clipped_share": "codec_bench.metrics.level:ClippedShare",
    "covl": "codec_bench.metrics.loizou:Covl",
    "coverage": "codec_bench.metrics.fad:Coverage",
    "csig": "codec_bench.metrics.loizou:Csig",
    "csii_high": "codec_bench.metrics.loizou:CsiiHigh",
    "csii_low": "codec_bench.metrics.loizou:CsiiLow",
    "csii_mid": "codec_bench.metrics.loizou:CsiiMid",
    "density": "codec_bench.metrics.fad:Density",
    "duration_error": "codec_bench.metrics.prosody:DurationError",
    "dwer": "codec_bench.metrics.error_rate:Dwer",
    "emotion_accuracy": "codec_bench.metrics.emotion:EmotionAccuracy",
    "emotion_heard": "codec_bench.metrics.emotion:EmotionProbability",
    "emotion_labelled": "codec_bench.metrics.emotion:EmotionLabelled",
    "emotion_sim": "codec_bench.metrics.emotion:EmotionSim",
    "energy_corr": "codec_bench.metrics.prosody:EnergyCorr",
    "estoi": "codec_bench.metrics.stoi:Estoi",
    "event_accuracy": "codec_bench.metrics.event_accuracy:EventAccuracy",
    "f0_corr": "codec_bench.metrics.pitch:F0Corr",
    "f0_rmse": "codec_bench.metrics.pitch:F0Rmse",
    "fad": "codec_bench.metrics.fad:Fad",
    "fwsegsnr": "codec_bench.metrics.loizou:FwSegSnr",
    "hallucinated": "codec_bench.metrics.error_rate:Hallucinated",
    "kad": "codec_bench.metrics.fad:Kad",
    "kid": "codec_bench.metrics.fad:Kid",
    "kl": "codec_bench.metrics.fad:Kl",
    "lid": "codec_bench.metrics.transcript:Lid",
    "llr": "codec_bench.metrics.loizou:Llr",
    "log_wmse": "codec_bench.metrics.snr:LogWmse",
    "loudness_error": "codec_bench.metrics.level:LoudnessError",
    "lsd": "codec_bench.metrics.lsd:Lsd",
    "mcd": "codec_bench.metrics.mcd:Mcd",
    "leading_silence_error": "codec_bench.metrics.speech_activity:LeadingSilenceError",
    "mel_distance": "codec_bench.metrics.mel_distance:MelDistance",
    "ncm": "codec_bench.metrics.loizou:Ncm",
    "per": "codec_bench.metrics.error_rate:Per",
    "pesq_nb": "codec_bench.metrics.pesq:PesqNb",
    "pesq_wb": "codec_bench.metrics.pesq:PesqWb",
    "sdr": "codec_bench.metrics.si_sdr:Sdr",
    "si_sdr": "codec_bench.metrics.si_sdr:SiSdr",
    "sim": "codec_bench.metrics.sim:Sim",
    "snr": "codec_bench.metrics.snr:Snr",
    "snr_seg": "codec_bench.metrics.snr:SnrSeg",
    "speaking_rate": "codec_bench.metrics.transcript:SpeakingRate",
    "speaking_rate_error": "codec_bench.metrics.prosody:SpeakingRateError",
    "speech_token_distance": "codec_bench.metrics.units:SpeechTokenDistance",
    "speechbertscore": "codec_bench.metrics.speechbertscore:SpeechBertScore",
    "speechbleu": "codec_bench.metrics.units:SpeechBleu",
    "noresqa_mos": "codec_bench.metrics.noresqa_mos:NoresqaMos",
    "squim_mos": "codec_bench.metrics.squim_mos:SquimMos",
    "srmr": "codec_bench.metrics.srmr:Srmr",
    "silence_kept": "codec_bench.metrics.speech_activity:SilenceRetention",
    "speech_kept": "codec_bench.metrics.speech_activity:SpeechRetention",
    "speech_share": "codec_bench.metrics.speech_activity:SpeechShare",
    "stft_distance": "codec_bench.metrics.stft_distance:StftDistance",
    "stoi": "codec_bench.metrics.stoi:Stoi",
    "ter": "codec_bench.metrics.units:Ter",
    "transcript": "codec_bench.metrics.transcript:Transcript",
    "true_peak": "codec_bench.metrics.level:TruePeak",
    "ttsds2_pitch": "codec_bench.metrics.ttsds2:Ttsds2PitchScore",
    "ttsds2_wav2vec2": "codec_bench.metrics.ttsds2:Ttsds2Wav2vec2Score",
    "ttsds2_whisper": "codec_bench.metrics.ttsds2:Ttsds2WhisperScore",
    "visqol": "codec_bench.metrics.visqol:Visqol",
    "voiced_in_both": "codec_bench.metrics.pitch:VoicedInBoth",
    "vuv_error": "codec_bench.metrics.pitch:VuvError",
    "warpq": "codec_bench.metrics.warpq:WarpQ",
    "watermark_bits": "codec_bench.metrics.watermark:WatermarkBits",
    "watermark_kept": "codec_bench.metrics.watermark:WatermarkRetention",
    "wer": "codec_bench.metrics.error_rate:Wer",
    "wss": "codec_bench.metrics.loizou:Wss",
    "wer_above_50": "codec_bench.metrics.error_rate:WerAbove50",
    "wer_below_50": "codec_bench.metrics.error_rate:WerBelow50",
    "wer_between": "codec_bench.metrics.consensus:WerBetween",
    "wer_macro": "codec_bench.metrics.error_rate:WerMacro",
    "wer_mean": "codec_bench.metrics.consensus:WerMean",
    "wer_smallest": "codec_bench.metrics.consensus:WerSmallest",
    **{name: f"codec_bench.metrics.predicted:{name}" for row in SCORERS for name in row.scores},
}
GROUPS = {
    group: tuple(name for row in SCORERS if row.group == group for name in row.scores)
    for group in sorted({row.group for row in SCORERS if row.group})
}


def _learned(topic: str) -> tuple[str, ...]:
    return tuple(name for row in SCORERS if row.topic == topic for name in row.scores)


TOPICS = {
    "rate": ("bitrate",),
    "content": (
        *("cer", "clap_score", "dwer", "event_accuracy", "hallucinated", "lid", "per", "speech_token_distance"),
        *("speechbertscore", "speechbleu", "ter", "transcript", "wer", "wer_above_50", "wer_below_50", "wer_between"),
        *("wer_macro", "wer_mean", "wer_smallest"),
    ),
    "speaker": ("sim",),
    "emotion": ("emotion_accuracy", "emotion_heard", "emotion_labelled", "emotion_sim", *_learned("emotion")),
    "naturalness": (*_learned("naturalness"), "srmr"),
    "fidelity": (
        *("cbak", "cd", "covl", "csig", "csii_high", "csii_low", "csii_mid", "estoi", "fwsegsnr", "llr", "log_wmse"),
        *("lsd", "mcd", "mel_distance", "ncm", "pesq_nb", "pesq_wb", *_learned("fidelity"), "sdr", "si_sdr"),
        *("snr", "snr_seg", "noresqa_mos", "squim_mos", "stft_distance", "stoi", "visqol", "warpq", "wss"),
    ),
    "prosody": (
        *("duration_error", "energy_corr", "f0_corr", "f0_rmse", "speaking_rate", "speaking_rate_error"),
        *("voiced_in_both", "vuv_error"),
    ),
    "watermark": ("watermark_bits", "watermark_kept"),
    "level": ("clipped_share", "loudness_error", "true_peak"),
    "silence": ("leading_silence_error", "silence_kept", "speech_kept", "speech_share"),
    "set": (
        *("asv_eer", "asv_eer_listed", "coverage", "density", "fad", "kad", "kid", "kl"),
        *("ttsds2_pitch", "ttsds2_wav2vec2", "ttsds2_whisper"),
    ),
}
"""Metrics by topic, in the order of `list metrics`. Each topic is a group that `--metrics` takes."""
QUALITY, OFFLINE = "quality", "all-offline"
"""The groups over several topics: naturalness and fidelity, and every metric."""
FETCHED_BY_PACKAGES = {"s3prl", "s3prl-frames"}
"""Features whose package downloads its weights itself, so the catalogue does not list them."""
_OVER_FRAMES_VOICED_IN_BOTH = {
    f"{name}{variant}" for name in ("f0_corr", "f0_rmse") for variant in ("", "[swift]", "[world]")
}
"""Metrics over frames voiced in both signals; `voiced_in_both` is printed next to them."""
REGISTRY = Registry("metric", "METRICS", TABLE)


def expand(texts: list[str]) -> list[str]:
    """Replace names that mean several metrics by the names of single metrics.

    A group such as `dnsmos[all-windows]` becomes its members with the same brackets. `wer[a+b]` becomes the error rate
    of each recogniser and of all together (`metrics.consensus`). Metrics over frames voiced in both signals add the
    metric `voiced_in_both`. A metric that results twice is listed once.

    Raises:
        UserError: a metric is requested twice.
    """
    out: list[str] = []
    for text in texts:
        spec = Spec.parse(text)
        suffix = (f"[{spec.argument}]" if spec.argument else "") + (f"@{spec.point}" if spec.point else "")
        out += [member + suffix for member in GROUPS[spec.name]] if spec.name in GROUPS else [spec.text]
    for name in out:
        if out.count(name) > 1:
            raise UserError("metric_named_twice", metric=name, hint="name each metric once")
    out = [member for name in out for member in _list_members(name)]
    companions = ["voiced_in_both" + name[len("f0_corr") :] for name in out if name in _OVER_FRAMES_VOICED_IN_BOTH]
    return list(dict.fromkeys([*out, *companions]))


def _list_members(name: str) -> list[str]:
    """Return the single metrics of `wer[a+b]` with several recognisers, or the name."""
    if "+" not in name:
        return [name]
    from codec_bench.metrics.consensus import members

    return members(Spec.parse(name)) or [name]


def chosen_metrics(metrics: str | Sequence[str] | None, preset: str | None) -> list[str]:
    """Join the requested metrics and groups with those of a preset.

    Args:
        metrics: names, or one text with commas between them; None for none.
        preset: the name of a list in `configs/preset`, or None.

    Raises:
        UnknownName: there is no such preset.
        UserError: no metric is named by either.
    """
    chosen = names(metrics) if metrics is not None else []
    if preset is not None:
        chosen += [name for name in read_config("preset", preset)["metrics"] if name not in chosen]
    if not chosen:
        hint = "name some (stoi,dnsmos) or a preset (embedded); see codec-bench list metrics and list presets"
        raise UserError("no_metric_named", hint=hint)
    return chosen


def group_names() -> list[str]:
    """List the groups of one topic (`codec_bench.metrics.groups`) and of several."""
    return [*TOPICS, QUALITY, OFFLINE]


def topic_of(name: str) -> str:
    """Return a metric's or group's topic, a key of `TOPICS`; empty for custom ones."""
    member = GROUPS[name][0] if name in GROUPS else name
    return next((topic for topic, members in TOPICS.items() if member in members), "")


def weights_of(name: str) -> str:
    """Return where a metric's weights come from, as one word for lists of metrics.

    Returns:
        `checkpoint` if it needs weights that no installed package contains; `by variant` if it has no default and its
        brackets name the model; else "".
    """
    from codec_bench.weights.from_packages import folder_in_a_package

    try:
        read = _read_by(name)
    except MissingExtra:
        return ""
    except UserError:  # it has no value without a variant
        return "by variant"
    fetched = any(folder_in_a_package(entry) is None for entry in _entries(name, read))
    return "checkpoint" if fetched or read & FETCHED_BY_PACKAGES else ""


def licences_of(name: str) -> list[str]:
    """List the licences of the weights that a metric without brackets needs."""
    from codec_bench.features import REGISTRY as FEATURES

    try:
        read = _read_by(name)
    except UserError:
        return []
    licences = [entry.licence for entry in _entries(name, read)] + [
        FEATURES.resolve(feature).licence for feature in read
    ]
    return sorted(set(filter(None, licences)))


def _read_by(name: str) -> set[str]:
    """Return the names of the features that a metric or a group's members read."""
    metrics = [build_metric(member) for member in GROUPS.get(name, (name,))]
    return {Spec.parse(feature).name for metric in metrics for feature in metric.estimate_features}


def _entries(name: str, read: set[str]) -> list[Checkpoint]:
    return list({entry.name: entry for user in (*read, name) for entry in _entries_by_user().get(user, ())}.values())


@cache
def _entries_by_user() -> dict[str, list[Checkpoint]]:
    """Index the catalogue of weights by each entry's name and by its user.

    The user is a metric or a feature, named by its key.
    """
    from codec_bench.weights import checkpoint, checkpoint_names

    by_user: dict[str, list[Checkpoint]] = {}
    for entry in map(checkpoint, checkpoint_names()):
        for user in {entry.name, *entry.used_by}:
            by_user.setdefault(user, []).append(entry)
    return by_user


def code_of_metric(text: str) -> str:
    """Return the hash of the code of a custom metric or of another package's; else empty."""
    name = Spec.parse(text).name
    return "" if name.endswith((".yaml", ".yml")) else REGISTRY.code_hash(name)


def is_foreign_metric(text: str) -> bool:
    """Whether a metric is custom code or another package's."""
    name = Spec.parse(text).name
    return not name.endswith((".yaml", ".yml")) and REGISTRY.is_foreign(name)


def build_metric(text: str) -> Metric:
    """Build one metric from its name; for groups, call `expand` first.

    Args:
        text: such as `stoi`, `wer[pocketsphinx]`, `versa/srmr`, `./mine.py:MyMetric`, or the file of a program,
            `./polqa.yaml`.

    Raises:
        UnknownName: there is no such metric.
        UserError: the class is not a metric, or has no such variant.
    """
    spec = Spec.parse(text)
    if spec.name.endswith((".yaml", ".yml")):
        from codec_bench.metrics.command import CommandMetric

        return CommandMetric(spec.name)
    if spec.name.startswith("versa/"):
        from codec_bench.metrics.versa import VersaMetric

        return VersaMetric(spec.name, spec.argument)
    if not is_custom_code(spec.name) and spec.name not in REGISTRY.table():
        from codec_bench.messages.errors import UnknownName

        raise UnknownName("metric", spec.name, [*REGISTRY.names(), *GROUPS, *group_names()])
    options: dict[str, Any] = {"variant": spec.argument, "point": spec.point}
    options = {key: value for key, value in options.items() if value is not None}
    metric = build_preserving_torch(lambda: call_with_known(REGISTRY.resolve(spec.name), options))
    for attribute in ("name", "kind", "protocol", "compute"):
        if not hasattr(metric, attribute):
            raise UserError(
                "metric_attribute", metric=text, attribute=attribute, hint="derive it from codec_bench.Metric"
            )
    if REGISTRY.is_foreign(spec.name):
        from codec_bench.stats.sets import check_aggregate

        check_aggregate(text, getattr(metric, "aggregate", "mean"))
    return metric


__all__ = [
    "GROUPS",
    "REGISTRY",
    "TOPICS",
    "Inputs",
    "Metric",
    "build_metric",
    "chosen_metrics",
    "code_of_metric",
    "expand",
    "group_names",
    "is_foreign_metric",
    "topic_of",
    "weights_of",
]
