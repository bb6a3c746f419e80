"""Codes of texts that are compared."""

from __future__ import annotations

SENTENCES = {
    "info": {
        "empty_reference": "nothing is left of the reference after normalisation",
        "spoken_form": "{note} (its spoken form)",
        "unknown_language": lambda languages, language: (
            f"the rule knows {' and '.join(languages)} only, and the language is '{language}'"
        ),
    },
    "warning": {
        "hallucinated": "words recognised where the reference has none",
        "tags_as_words": "the reference holds a tag, which the rule compares as words",
        "tags_removed": "tags of the reference were not compared",
    },
    "error": {
        "one_text_one_list": (
            "one side of an error rate is a single text and the other a list; expected two texts or two lists"
        ),
        "not_texts": "the {role} of an error rate is a {type}; expected a text or a list of texts",
        "unequal_texts": (
            "an error rate got {references} references and {estimates} estimates; expected as many of each"
        ),
        "not_a_text": "{role} {index} of an error rate is a {type}; expected a text",
        "rule_language": "the rule '{name}' knows {languages} only, not '{language}'",
        "unequal_rule_inputs": (
            "a rule of error rates got {references} references, {estimates} estimates and {languages} "
            "languages; expected as many of each"
        ),
        "rule_one_reference": "the rule '{name}' compares with one reference, and got a spoken form of it too",
        "rule_unit": "the published rule '{name}' counts by '{unit}', not by '{requested}'",
        "whisper_normalizer_version": (
            "the installed whisper-normalizer replaces other words than Whisper does, which would change "
            "the numbers of 'whisper-en'; expected version 0.1.15"
        ),
        "not_normalised": "the text cannot be normalised: {cause}",
    },
}
