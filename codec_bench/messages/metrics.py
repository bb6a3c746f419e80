"""Codes of metrics."""

from __future__ import annotations

SENTENCES = {
    "info": {},
    "warning": {
        "words_without_speech": "words heard where the recogniser hears no speech",
        "of_recogniser": "{recogniser}: {cause}",
    },
    "error": {},
}
