"""Codes that several rooms use."""

from __future__ import annotations

from collections.abc import Sequence

_KINDS = {
    "registered_name": "codec, metric, feature, benchmark, model, suite, data set, preset or run",
    "checked_name": "codec, metric, benchmark, prompt, model, data set, file or folder",
    "batched_name": "codec, feature or metric",
    "stage_of_run": "codec or feature in this run",
    "judge_of_runs": "judge in these runs",
    "metric_of_runs": "metric in these runs",
    "metric_of_tables": "metric in these tables",
    "system_with_audio": "chosen system with a folder of audio",
    "profiled_family": "family among the profiled codecs",
    "codec_family": "family of codecs",
    "optional_measurement": "optional measurement",
    "test_part": "part of a test",
    "toolkit": "toolkit whose results can be read",
    "metric_order": "order of metrics",
    "rating_kind": "kind of rating",
    "tie_rule": "rule for ties",
    "listening_format": "format of a listening test",
    "listening_kind": "kind of listening test",
    "answer_status": "reason to keep answers by",
    "rater_check": "check of raters",
    "screening_rule": "rule of post-screening",
    "option_rule": "rule that reads an option",
    "reply_reader": "published reader of replies",
    "answer_metric": "metric of answers",
    "answer_step": "post-processing step",
    "accuracy_rule": "rule of accuracy",
    "bleu_tokeniser": "tokeniser of BLEU",
    "coco_bleu_order": "order of coco_bleu",
    "ifeval_variant": "variant of ifeval",
    "meteor_variant": "variant of METEOR",
    "rouge_variant": "variant of ROUGE-L",
    "section_variant": "variant of section_accuracy",
    "boundary_tolerance": "tolerance of boundary_f1",
    "rendering": "kind of rendering",
    "refusal_rule": "rule of refusals",
    "repetition_rule": "rule of repetition",
    "s3prl_upstream": "upstream of s3prl",
    "error_rate_unit": "unit of error rates",
    "error_rate_rule": "rule of error rates",
    "benchmark_of_suite": "benchmark in the suite",
    "feature_option": "option of the feature",
    "metric_option": "option of the metric",
    "part_of_run": "model, benchmark or feature of this run",
    "name_of_check": "name in this check",
    "batched_name_of_check": "codec, feature or metric in this check",
    "rule": "rule of",
}
"""Words of kinds of names; those of other kinds are their keys, with spaces."""
_IN_WORDS = ("benchmark_of_suite", "feature_option", "metric_option", "rule")
"""Kinds whose words end with the name of what they are in."""


def words_of(kind: str) -> str:
    """The words of a kind of names."""
    return _KINDS.get(kind, kind.replace("_", " "))


def either(names: Sequence[str]) -> str:
    """Names, one of which is expected: `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def feature_words(feature: str, name: str = "") -> str:
    """The words of what needs a package."""
    return _FEATURES.get(feature, feature).format(name=name)


def _unknown_name(kind: str, name: str, within: str = "") -> str:
    location = f"{'' if kind in _IN_WORDS else ' in'} '{within}'" if within else ""
    return f"there is no {words_of(kind)}{location} called '{name}'"


VALUES = {
    "text": "a text",
    "optional_text": "a text or None",
    "texts": "a text, or a list of texts",
    "rows": "a text, a list of texts, or a mapping of the names of rows to texts",
    "whole_number": "a whole number",
    "number": "a number",
    "flag": "true or false",
    "retention": "all, none, or a whole number",
    "settings": "a mapping of names to options, such as {dnsmos: {weights: DIR}}",
    "progress": "True, False or a function",
    "sounds": "sounds or a tensor of them",
    "sound": "Audio, an array or a tensor",
    "object": "an object",
    "json_object": "a JSON object",
    "audio_object": "an object with audio_base64 or waveform_f32_base64",
    "base64": "a text in base64",
    "item": "a mapping or an Item",
    "item_audio": "bytes of a file, a path or codec_bench.Audio",
}
"""Words of the values that an option or argument takes."""
_FEATURES = {
    "codec": "the codec '{name}'",
    "recogniser": "the recogniser '{name}'",
    "recogniser_with_cublas": "the recogniser '{name}', which computes with cuBLAS,",
    "speaker_embedding": "the speaker embedding '{name}'",
    "s3prl_upstream": "the upstream s3prl[{name}]",
    "speech_activity": "speech activity",
    "rule": "the rule '{name}' for texts of this language",
    "number_words": "writing numbers as words",
    "chinese_numbers": "reading Chinese numbers",
    "chinese_script": "the conversion of Chinese script",
    "japanese_words": "cutting Japanese into words",
    "thai_words": "cutting Thai into words",
    "bleu_tokeniser": "BLEU with the tokeniser '{name}'",
    "answer_language": "the language of an answer",
    "emergent_tts_reader": "the published reader of EmergentTTS-Eval's verdicts",
    "vibevoice_scheduler": "VibeVoice's schedule of noise",
    "http_endpoint": "a model behind an HTTP endpoint",
    "websocket": "a model behind a WebSocket",
    "hub_layout": "a data set in the layout of the Hugging Face hub",
    "isolated_environment": "an isolated environment",
    "figure": "a figure",
    "table": "a table for {name}",
    "file": "'{name}'",
    "tracker": "--log {name}",
    "ray_executor": "--executor ray",
}
"""Words of what needs a package; other features, such as `DNSMOS`, are their names."""


SENTENCES = {
    "info": {
        "skipped": "it was skipped",
        "several": lambda notes: "; ".join(notes),
    },
    "warning": {
        "remark": "{message}",
    },
    "error": {
        "error": lambda type, message: ": ".join(filter(None, (type, message))),
        "unknown": "no reason was recorded",
        "unknown_name": _unknown_name,
        "package_not_installed": lambda feature, package, name="": (
            f"{feature_words(feature, name)} needs the package '{package}', which is not installed"
        ),
        "device_full": "'{device}' has no room for {item}: {free}",
        "file_not_readable": "'{path}' cannot be read: {cause}",
        "file_not_writable": "'{path}' cannot be written: {cause}",
        "output_not_writable": "standard output cannot be written: {cause}",
        "not_copied": "'{path}' cannot be copied to '{to}': {cause}",
        "not_started": "{program} cannot be started: {cause}",
        "not_utf8": "it is not UTF-8 text (byte {byte})",
        "no_variant": "{name} has no variant '{variant}'",
        "no_precision": "{name} has no precision '@{point}'; it is computed in float32",
        "no_placeholder": "'{path}': the {role} has no {{{name}}} among its arguments",
        "mapping_expected": "'{path}' holds {type}; expected a mapping of names to values",
        "service_refusal": "{message}",
    },
}
