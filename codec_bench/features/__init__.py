"""Features: batched models, computed once per signal and shared by all metrics.

Which file to open
    `scorers.yaml`  the table of learned scorers, read by `scorers.py`; `learned.py` builds features of rows that hold a
    network.
    `base.py`       the interface; `encoder_feature.py` a speech encoder with a head. `precision_names.py` parses
    `@float16`.
    `padded.py`, `windowed.py`  passes of a network over whole signals, and over windows.
    `recognisers/`, `speakers/`  transcripts and speaker embeddings. Every other file is one model or family.
"""

from __future__ import annotations

import inspect
from typing import Any

from codec_bench.config.registry import Registry, Spec, call_with_known
from codec_bench.features.base import Feature, Result, Unavailable
from codec_bench.features.scorers import SCORERS

TABLE = {
    "audiobox": "codec_bench.features.audiobox:Audiobox",
    "audioseal": "codec_bench.features.audioseal:AudioSeal",
    "auto-att": "codec_bench.features.auto_att:AutoAtt",
    "campplus": "codec_bench.features.speakers.three_d_speaker:CamPlusPlusSpeaker",
    "canary-1b-v2": "codec_bench.features.recognisers.canary:Canary",
    "clap-htsat-unfused": "codec_bench.features.clap:Clap",
    "cohere-transcribe-03-2026": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "dnsmos": "codec_bench.features.dnsmos:Dnsmos",
    "dnsmos-pro": "codec_bench.features.dnsmos_pro:DnsmosPro",
    "emotion2vec-plus-large": "codec_bench.features.emotion2vec:Emotion2vecPlusLarge",
    "eres2net": "codec_bench.features.speakers.three_d_speaker:ERes2NetSpeaker",
    "fun-asr-nano-2512": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "ge2e": "codec_bench.features.speakers.ge2e:Ge2e",
    "ge2e-vad": "codec_bench.features.speakers.ge2e:Ge2eVad",
    "granite-speech-5.0-470m-turboctc": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "hubert-large-ls960": "codec_bench.features.recognisers.ctc:Ctc",
    "hubert-km50": "codec_bench.features.units:HubertUnits",
    "hubert-km100": "codec_bench.features.units:HubertUnits",
    "hubert-km200": "codec_bench.features.units:HubertUnits",
    "kyutai-stt-1b-en-fr": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser24k",
    "kyutai-stt-2.6b-en": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser24k",
    "level": "codec_bench.features.level:Level",
    "mel_cepstrum": "codec_bench.features.mel_cepstrum:MelCepstrum",
    "moss-transcribe-diarize": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "nemotron-3.5-asr-streaming-0.6b": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "nemotron-speech-streaming-en-0.6b": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "nisqa": "codec_bench.features.nisqa:Nisqa",
    "nisqa-tts": "codec_bench.features.nisqa:NisqaTts",
    "nomad-embedding": "codec_bench.features.scoreq:Nomad",
    "paraformer-zh": "codec_bench.features.recognisers.paraformer:Paraformer",
    "parakeet-ctc-0.6b": "codec_bench.features.recognisers.parakeet:Parakeet",
    "parakeet-ctc-1.1b": "codec_bench.features.recognisers.parakeet:Parakeet",
    "parakeet-tdt-0.6b-v2": "codec_bench.features.recognisers.parakeet:Parakeet",
    "parakeet-tdt-0.6b-v3": "codec_bench.features.recognisers.parakeet:Parakeet",
    "phones-wav2vec2-lv60": "codec_bench.features.recognisers.ctc:CtcPhones",
    "pitch": "codec_bench.features.pitch:Pitch",
    "pocketsphinx": "codec_bench.features.recognisers.pocketsphinx:Pocketsphinx",
    "qwen3-asr-0.6b": "codec_bench.features.recognisers.qwen3_asr:Qwen3Asr",
    "qwen3-asr-1.7b": "codec_bench.features.recognisers.qwen3_asr:Qwen3Asr",
    "redimnet-b5": "codec_bench.features.speakers.redimnet:ReDimNetB5",
    "s3prl": "codec_bench.features.speakers.s3prl:S3prl",
    "s3prl-frames": "codec_bench.features.frames:S3prlFrames",
    "scoreq": "codec_bench.features.scoreq:Scoreq",
    "scoreq-embedding": "codec_bench.features.scoreq:ScoreqEmbedding",
    "sigmos": "codec_bench.features.sigmos:Sigmos",
    "seaco-paraformer-zh": "codec_bench.features.recognisers.paraformer:Paraformer",
    "sensevoice-small": "codec_bench.features.recognisers.sensevoice:SenseVoice",
    "speech-activity": "codec_bench.features.speech_activity:SpeechActivity",
    "ttsds2-pitch": "codec_bench.features.ttsds2:Ttsds2Pitch",
    "ttsds2-wav2vec2": "codec_bench.features.ttsds2_activations:Ttsds2Wav2vec2",
    "ttsds2-whisper": "codec_bench.features.ttsds2_activations:Ttsds2Whisper",
    "spoken-language": "codec_bench.features.recognisers.whisper:WhisperLanguage",
    "noresqa-frames": "codec_bench.features.non_matching_mos:NoresqaFrames",
    "squim-frames": "codec_bench.features.non_matching_mos:SquimFrames",
    "utmos": "codec_bench.features.utmos:Utmos",
    "utmosv2": "codec_bench.features.utmosv2:UtmosV2",
    "vibevoice-asr": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser24k",
    "voxtral-mini-4b-realtime-2602": "codec_bench.features.recognisers.transformers_asr:TransformersRecogniser",
    "wav2vec2-base-960h": "codec_bench.features.recognisers.ctc:Ctc",
    "wav2vec2-large-960h-lv60-self": "codec_bench.features.recognisers.ctc:Ctc",
    "wavlm-base-plus-sv": "codec_bench.features.speakers.wavlm_base_sv:WavlmBasePlusSv",
    "wavlm-large-sv": "codec_bench.features.speakers.wavlm_sv:WavlmLargeSv",
    "wespeaker-resnet34": "codec_bench.features.speakers.wespeaker:WespeakerResnet34",
    "whisper-base": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-base.en": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-distil-large-v3": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-distil-large-v3.5": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-large-v2": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-large-v3": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-large-v3-turbo": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-medium": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-medium.en": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-small": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-small.en": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-tiny": "codec_bench.features.recognisers.whisper:Whisper",
    "whisper-tiny.en": "codec_bench.features.recognisers.whisper:Whisper",
    "wvmos": "codec_bench.features.wvmos:Wvmos",
    **{row.feature: f"codec_bench.features.learned:{row.feature}" for row in SCORERS if row.network is not None},
}
REGISTRY = Registry("feature", "FEATURES", TABLE)


def load_feature(text: str, *, device: str = "cpu", weights: str | None = None) -> Feature:
    """Build a feature (an extractor whose results metrics read) by name.

    A class with several names in the table gets the name as its argument `model`.

    Args:
        text: such as `ge2e` or `utmos@float16`.
        device: `cpu` or `cuda:N`.
        weights: a file, folder or hub id in place of the feature's own weights, or None.

    Raises:
        UnknownName: no such feature.
        MissingExtra: its package is not installed.
    """
    spec = Spec.parse(text)
    options: dict[str, Any] = {"device": device, "weights": weights}
    if spec.argument is not None:
        options["variant"] = spec.argument
    if spec.point is not None:
        options["point"] = spec.point
    feature = REGISTRY.resolve(spec.name)
    if "model" in inspect.signature(feature).parameters:
        options["model"] = spec.name
    instance: Feature = call_with_known(feature, options)
    return instance


def exact_name(text: str, *, gpu: bool, weights: str | None = None) -> str:
    """Return a feature's name with the library that it would run with on the device.

    Features that run with one library only keep their name.

    Args:
        text: such as `whisper-large-v3@28s`.
        gpu: whether the feature runs on a GPU.
        weights: custom ones, or None.

    Raises:
        UnknownName: no such feature.
    """
    spec = Spec.parse(text)
    resolve = getattr(REGISTRY.resolve(spec.name), "exact_point", None)
    return text if resolve is None else f"{spec.name}@{resolve(spec.name, spec.point, weights, gpu=gpu)}"


__all__ = ["REGISTRY", "Feature", "Result", "Unavailable", "exact_name", "load_feature"]
