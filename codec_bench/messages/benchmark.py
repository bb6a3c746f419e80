"""Codes of questions, answers and verdicts."""

from __future__ import annotations

SENTENCES = {
    "info": {},
    "warning": {
        # Of answers.
        "not_heard": "{s:.1f} s of its audio were not heard by the model",
        "answer_empty": "the answer is empty",
        "answer_endless": "the answer has no end: it ran into the limit of length, or repeats itself",
        "answer_copy": "the answer is a copy of what was asked",
        "answer_phonemes": "the answer is in phonemes",
        "answer_language": "the answer is in another language or script than was expected",
        "answer_truncated": "the answer ends inside of its reasoning",
        "answer_refusal": "the model declines to answer",
        # Flags of scores.
        "ignored_format": "the answer ignores the format that was asked for",
        "tied_pair": "both sounds of a pair are equally likely to the model; such a pair counts as half",
        "doubled_choice": "the right choice stands more than once among the choices of the question",
        "no_such_label": "the expected answer is none of the labels of the question",
        "missing_parts": "parts of the session are missing, and their words count as errors of the others",
        "empty_answer_no_option": "an empty answer is like no option",
        "also_says": "a judge's reply that also says another verdict",
    },
    "error": {
        # Flags of verdicts on sound that is no answer.
        "spoken_answer_short": "a spoken answer of less than 0.3 s",
        "spoken_answer_silent": "a spoken answer that is silent",
        "spoken_answer_steady": "a spoken answer that is noise or a steady tone",
        "spoken_answer_copy": "a spoken answer that is a copy of the question",
    },
}
