"""Recognisers by name: those of a metric or model, their languages and protocols."""

from __future__ import annotations

from collections.abc import Mapping

from codec_bench.config import config_names, read_config
from codec_bench.config.registry import Spec
from codec_bench.features import REGISTRY, TABLE
from codec_bench.messages.errors import UserError

RECOGNISERS = (
    "pocketsphinx", "whisper-", "paraformer", "seaco-paraformer", "sensevoice", "hubert-", "wav2vec2-", "parakeet-",
    "canary-", "qwen3-asr-", "cohere-transcribe-", "fun-asr-", "granite-speech-", "nemotron-", "moss-transcribe-",
    "vibevoice-asr", "kyutai-stt-", "voxtral-mini-4b-realtime-",
)  # fmt: skip
"""Prefixes of the names of built-in recognisers, whose results hold a transcript."""


def resolve_recognisers(stem: str, variant: str | None) -> tuple[dict[str, str], str | None]:
    """Resolve the recogniser that a metric's brackets name, or one per language.

    Args:
        stem: the metric's name, for messages.
        variant: the text in the brackets, or None.

    Returns:
        Recognisers by base language, and the one for all other languages or None.

    Raises:
        UserError: no recogniser was named, or the feature is not a recogniser.
        UnknownName: no such feature.
    """
    builtin = [name for name in TABLE if name.startswith(RECOGNISERS)]
    hint = f"known recognisers: {', '.join([*builtin, *config_names('recogniser')])}"
    if variant is None:
        raise UserError("recogniser_unnamed", metric=stem, hint=hint)
    if variant in config_names("recogniser"):
        choice = read_config("recogniser", variant)
        return dict(choice.get("languages") or {}), choice.get("otherwise")
    base = Spec.parse(variant).name
    if base in TABLE and base not in builtin:
        raise UserError("not_a_recogniser", metric=stem, variant=variant, hint=hint)
    REGISTRY.resolve(base)
    return {}, variant


def languages_of(name: str) -> tuple[str, ...]:
    """Return the languages of a recogniser (`en`, without regions).

    The result is empty if the recogniser does not state them.
    """
    spec = Spec.parse(name)
    known = getattr(REGISTRY.resolve(spec.name), "languages_of", None)
    if known is not None:
        return known(spec.name)
    return tuple(getattr(REGISTRY.resolve(spec.name), "languages", ()))


def known_languages(by_language: Mapping[str, str], otherwise: str | None) -> tuple[str, ...]:
    """Return the languages that a metric's recognisers know together.

    Args:
        by_language: the recogniser of each language.
        otherwise: the one for all other languages, or None.

    Returns:
        Language codes; empty if unlimited, because a recogniser states none.
    """
    if otherwise is None:
        return tuple(by_language)
    known = [languages_of(name) for name in dict.fromkeys([*by_language.values(), otherwise])]
    return tuple(dict.fromkeys([*by_language, *(code for codes in known for code in codes)])) if all(known) else ()


def protocol_of_recogniser(name: str) -> str:
    """Return the id that names a recogniser's method in records, without its weights."""
    spec = Spec.parse(name)
    recogniser = REGISTRY.resolve(spec.name)
    protocol_id = getattr(recogniser, "protocol_id", None)
    return protocol_id(spec.name, spec.point) if protocol_id is not None else str(getattr(recogniser, "protocol", name))
