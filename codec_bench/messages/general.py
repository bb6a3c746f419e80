"""Codes that several rooms use."""

from __future__ import annotations

SENTENCES = {
    "info": {
        "skipped": "it was left out",
        "several": lambda notes: "; ".join(notes),
    },
    "warning": {
        "remark": "{message}",
    },
    "error": {
        "error": lambda type, message: ": ".join(filter(None, (type, message))),
        "unknown": "no reason was recorded",
    },
}
