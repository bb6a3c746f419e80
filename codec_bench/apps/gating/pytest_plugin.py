"""The pytest fixture `codec_bench_gate`.

Examples:
    def test_quality(codec_bench_gate):
        codec_bench_gate.check("runs/today", "baseline.parquet", spec="gate.yaml")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from codec_bench.apps.gating.verdicts import GateResult


class Gate:
    """Fails the test if a run regressed."""

    def check(self, run: Any, against: Any, *, spec: Any = None, system: str | None = None) -> GateResult:
        """Compare a run with a baseline; arguments as of `codec_bench.gate_check`.

        Raises:
            Failed: the gate is not passed.
            UserError: as of `codec_bench.gate_check`.
        """
        from codec_bench.apps.gating.api import gate_check
        from codec_bench.apps.gating.words import CHECK_HEADS, check_notes, check_rows, conclusion

        result = gate_check(run, against=against, spec=spec, system=system)
        if not result.passed:
            rows = [", ".join(f"{head} {cell}" for head, cell in zip(CHECK_HEADS, row)) for row in check_rows(result)]
            pytest.fail("\n".join([conclusion(result), *rows, *check_notes(result)]), pytrace=False)
        return result


@pytest.fixture
def codec_bench_gate() -> Gate:
    """Provide a gate whose `check` fails the test if a run regressed."""
    return Gate()
