"""Regular expressions of the readers, from `patterns.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import yaml


@cache
def _texts() -> Mapping[str, Mapping[str, str]]:
    groups = yaml.safe_load(files(__package__).joinpath("patterns.yaml").read_text(encoding="utf-8"))
    return {group: {name: text.replace("\n", "") for name, text in one.items()} for group, one in groups.items()}


def compile_pattern(group: str, name: str, **parts: str) -> re.Pattern[str]:
    """Compile a pattern; `@part@` is another entry of the group or of `parts`."""
    entries = {**_texts()[group], **parts}
    return re.compile(re.sub("@([a-z_]+)@", lambda match: entries[match[1]], entries[name]))
