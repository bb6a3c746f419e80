"""How much padded audio a batch may hold on a device, found by trial."""

from __future__ import annotations

_GROWTH = 1.25  # by what factor the budget grows after a batch that nearly filled it
_PAUSE = 8  # full batches after a failure before a larger one is tried; twice as many after every further failure


class Budget:
    """The budget of a class that has the first two of these attributes.

    A failure halves the budget. It recovers: memory that another program or another model took may be free again. Every
    failure doubles the number of batches before the next trial, so trials that fail become rare.

    Attributes
        budget_s: padded seconds of a batch, at most.
        growing: whether a larger budget than the first is tried.
        most_s: the first budget, if it does not grow and was halved; it recovers up to this.
        pause, rest: full batches to wait for after the next failure, and after the last one.
    """

    budget_s: float
    growing: bool
    most_s: float | None = None
    pause: int = _PAUSE
    rest: int = 0

    def fitted(self, padded_s: float) -> None:
        """Notes that a batch of this size fitted into memory. If it nearly filled the budget, the next may be larger."""
        if padded_s <= 0.7 * self.budget_s:
            return
        if self.rest:
            self.rest -= 1
        elif self.growing:
            self.budget_s *= _GROWTH
        elif self.most_s is not None:
            self.budget_s = min(self.most_s, self.budget_s * _GROWTH)

    def did_not_fit(self, padded_s: float) -> None:
        """Notes that a batch of this size did not fit into memory: halves the budget."""
        if not self.growing and self.most_s is None:
            self.most_s = self.budget_s
        self.budget_s = min(self.budget_s, padded_s) / 2
        self.rest, self.pause = self.pause, 2 * self.pause
