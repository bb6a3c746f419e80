"""How much padded audio a batch may hold: by a memory model, or by trial."""

from __future__ import annotations

FILLED = 0.5
"""The share of free memory for a batch; the rest covers errors of the model."""
_PAUSE = 8  # full batches after a failure before a larger one is tried; twice as many after every further failure


class Budget:
    """The budget of a class with the first two of these attributes.

    With known memory use, the model is the most bytes per padded second of any batch, and the budget fills `FILLED` of
    the memory. Otherwise the budget grows by trial. A failure halves the budget and doubles the number of batches
    before the next trial.

    Attributes
        budget_s: the most padded seconds of a batch.
        growing: whether a larger budget than the first is tried.
        growth: the factor after a batch that nearly filled the budget.
        most_s: the largest budget: the first, if it does not grow and was halved, or that of the model; or None.
        bytes_per_s: of the model; 0 while unknown.
        pause, rest: full batches to wait for after the next failure, and after the last one.
    """

    budget_s: float
    growing: bool
    growth: float = 1.25
    most_s: float | None = None
    bytes_per_s: float = 0.0
    pause: int = _PAUSE
    rest: int = 0

    def measured(self, padded_s: float, used: int, room: int) -> None:
        """Note a batch's memory, and set the budget unless it was halved lately.

        A batch much smaller than the budget is ignored.
        """
        if not self.growing or padded_s <= 0.3 * self.budget_s or used <= 0:
            return
        self.bytes_per_s = max(self.bytes_per_s, used / padded_s)
        self.most_s = FILLED * room / self.bytes_per_s
        if not self.rest:
            self.budget_s = self.most_s

    def fitted(self, padded_s: float) -> None:
        """Note that a batch of this size fitted; a nearly full budget grows."""
        if padded_s <= 0.7 * self.budget_s:
            return
        if self.rest:
            self.rest -= 1
        elif self.growing or self.most_s is not None:
            grown_s = self.budget_s * self.growth
            self.budget_s = grown_s if self.most_s is None else max(self.budget_s, min(self.most_s, grown_s))

    def did_not_fit(self, padded_s: float) -> None:
        """Note that a batch of this size did not fit into memory: halve the budget."""
        if not self.growing and self.most_s is None:
            self.most_s = self.budget_s
        self.budget_s = min(self.budget_s, padded_s) / 2
        self.rest, self.pause = self.pause, 2 * self.pause
