"""Published rules about spoken words: SpeechMMLU's option, VocalBench's knowledge.

Source: `slm_eval/evaluator/speechmmlu_evaluator.py` of github.com/XiaomiMiMo/MiMo-Audio-Eval d64df78;
`utils/read_score_knowledge.py` and `utils/whisper_asr/whisper_asr.py` of github.com/SJTU-OmniAgent/VocalBench 5e9cce0.
"""

from __future__ import annotations

import re

from codec_bench.text.whisper import whisper_en

_OPTION = re.compile(r"option\s*([abcd])")
_TAGS = re.compile(r"<\|.*?\|>")
_BLANKS = re.compile(r"\s+")
_BEFORE_MARK = re.compile(r" ?([!,.?;:])")


def speech_mmlu_letter(text: str) -> str | None:
    """The letter after the first `option`, even inside a word (`option be` is B)."""
    match = _OPTION.search(text.lower())
    return match[1].upper() if match is not None else None


def names_reference(transcript: str, reference: str) -> bool:
    """Whether a transcript has the reference, even inside words (Whisper's rule).

    The transcript goes through the rule twice: in transcription, and in comparison.
    """
    return _rule(reference).lower() in _rule(_rule(transcript)).lower()


def _rule(text: str) -> str:
    tidy = _BEFORE_MARK.sub(r"\1", _BLANKS.sub(" ", _TAGS.sub(" ", text))).replace("-", " ").lstrip(" ")
    return whisper_en()(tidy)
