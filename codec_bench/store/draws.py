"""In what ways a question is asked several times, as the record names them: wordings, and orders of options."""

from __future__ import annotations

from codec_bench.store.record import Run

WORDING = "wording"
"""Name of the subsets that the wordings of a prompt form; their values are the wordings' numbers, `01` and so on."""
ORDER = "choice_order"
"""The field of a question whose options were put into another order: the letters that they have in the data, in their
new order.
"""
AS_WRITTEN, SHUFFLED, ALL_ROTATIONS = "given", "shuffled", "all-rotations"
"""In which order the options of a question are offered: as in the data, in one by seed and id, or in every rotation."""


def draw_counts(run: Run) -> dict[str, int] | None:
    """How many answers each question gets, by its id, where each is asked in every order of its options; else None.

    A question without options that can be put into another order is asked once.
    """
    if (run.meta.get("config") or {}).get("choices") != ALL_ROTATIONS:
        return None
    rows = run.query(
        f"SELECT draw_of, COALESCE(LENGTH(json_extract(fields, '$.{ORDER}')), 1) FROM questions WHERE draw_of IS NOT NULL"
    )
    return dict(rows)


__all__ = ["ALL_ROTATIONS", "AS_WRITTEN", "ORDER", "SHUFFLED", "WORDING", "draw_counts"]
