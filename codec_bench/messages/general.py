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
        "unknown_name": "there is no {kind} called '{name}'",
        "package_not_installed": "{feature} needs the package '{package}', which is not installed",
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
