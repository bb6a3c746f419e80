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
        "not_normalised": "the text cannot be normalised: {cause}",
    },
}
