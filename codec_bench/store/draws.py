"""Repeated questions in the record: wordings and orders of options."""

from __future__ import annotations

from codec_bench.store.record import Run

WORDING = "wording"
"""Name of the subsets of a prompt's wordings; their values are the wordings' numbers, `01` and so on."""
ORDER = "choice_order"
"""Field of a question with reordered options: their letters in the data, in the new order."""
AS_WRITTEN, SHUFFLED, ALL_ROTATIONS = "given", "shuffled", "all-rotations"
"""Order of a question's options: as in the data, shuffled by seed and id, or every rotation."""


def draw_counts(run: Run) -> dict[str, int] | None:
    """Expected answers by question id in a run over all rotations; else None.

    Such a run sends a question once for each rotation of its options, and once without options.
    """
    if (run.meta.get("config") or {}).get("choices") != ALL_ROTATIONS:
        return None
    length = f"COALESCE(LENGTH(json_extract(fields, '$.{ORDER}')), 1)"
    return dict(run.query(f"SELECT draw_of, {length} FROM questions WHERE draw_of IS NOT NULL"))
