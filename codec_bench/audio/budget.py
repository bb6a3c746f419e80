"""How much padded audio a batch may hold on a device, found by trial."""

from __future__ import annotations

_GROWTH = 1.25  # by what factor the budget grows after a batch that nearly filled it


class Budget:
    """The budget of a class that has these two attributes.

    Attributes
        budget_s: padded seconds of a batch, at most.
        growing: whether a larger budget is still being tried.
    """

    budget_s: float
    growing: bool

    def fitted(self, padded_s: float) -> None:
        """Notes that a batch of this size fitted into memory. If it nearly filled the budget, the next may be larger."""
        if self.growing and padded_s > 0.7 * self.budget_s:
            self.budget_s *= _GROWTH

    def did_not_fit(self, padded_s: float) -> None:
        """Notes that a batch of this size did not fit into memory: halves the budget, which then no longer grows."""
        self.budget_s, self.growing = min(self.budget_s, padded_s) / 2, False
