"""What the codes of a codec say of phones: the sections `phones` and `abx` of a profile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codec_bench.apps.profiling.abx import AbxItems
from codec_bench.apps.profiling.phones import PhoneCounter
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.data.alignments import read_alignments
from codec_bench.types import Codes


class Content:
    """Takes the codes of a corpus, item by item, and measures them at the end.

    Args:
        alignments: the file or folder that says when phones are said; None measures nothing.
        speakers: of the samples, by their ids. seed: decides chance, and which phones are compared.
    """

    def __init__(self, alignments: str | None, speakers: Mapping[str, str], seed: int) -> None:
        self._seed = seed
        self._measures: tuple[PhoneCounter, AbxItems] | None = None
        if alignments is not None:
            found = read_alignments(Path(alignments))
            self._measures = PhoneCounter(found), AbxItems(found, speakers)

    def add(self, name: str, codes: Codes) -> None:
        """Takes the codes of a sample, or of one of its channels."""
        for measure in self._measures or ():
            measure.add(name, codes)

    def sections(self, codec: Any, alive: Callable[[], None]) -> dict[str, dict[str, Any]]:
        """Both sections, each with its reason where there is none.

        Args:
            codec: whose vectors are compared, if it gives them. alive: called while the sections are made.
        """
        if self._measures is None:
            nothing = {"state": "not measured", "reason": "no alignments were given"}
            return {"phones": nothing, "abx": nothing}
        phones, abx = self._measures
        return {
            "phones": _or_reason(lambda: phones.result(self._seed)),
            "abx": _or_reason(lambda: abx.result(self._seed, alive, getattr(codec, "vectors", None))),
        }


def _or_reason(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A section, or why it does not apply."""
    try:
        return measure()
    except NotApplicable as reason:
        return {"state": "not applicable", "reason": str(reason)}
