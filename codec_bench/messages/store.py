"""Codes of records of other programs."""

from __future__ import annotations

SENTENCES = {
    "info": {
        "imported_no_word": "the reference has no word",
    },
    "warning": {},
    "error": {
        "imported_value": "the file holds {value}",
        "imported_nothing": "the file holds no value",
        "imported_counts": "the file does not hold all four counts of this error rate",
        "imported_negative": "the file holds {number:g}, and no {name} is below 0",
    },
}
