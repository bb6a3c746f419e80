"""How much padded audio a batch may hold on a device: by a model of its memory, or found by trial."""

from __future__ import annotations

FILLED = 0.5
"""The part of the free memory that a batch is to fill.

The rest is for what the model does not see, such as longer signals.
"""
_PAUSE = 8  # full batches after a failure before a larger one is tried; twice as many after every further failure


class Budget:
    """The budget of a class that has the first two of these attributes.

    Where the memory that batches take is known, the model is so many bytes for a padded second: the most that a batch
    has taken. The budget is what then fills `FILLED` of the memory. Where it is not known, the budget grows by trial.

    A failure halves the budget. It recovers: memory that another program or another model took may be free again. Every
    failure doubles the number of batches before the next trial, so trials that fail become rare.

    Attributes
        budget_s: padded seconds of a batch, at most.
        growing: whether a larger budget than the first is tried.
        growth: by what factor the budget grows after a batch that nearly filled it.
        most_s: the largest budget: the first, if it does not grow and was halved, or that of the model. None for none.
        bytes_per_s: of the model; 0 while nothing is known.
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
        """Notes how many bytes a batch took, of how many; the budget becomes what fits, unless it was halved lately.

        A batch much smaller than the budget says little of larger ones, and is omitted.
        """
        if not self.growing or padded_s <= 0.3 * self.budget_s or used <= 0:
            return
        self.bytes_per_s = max(self.bytes_per_s, used / padded_s)
        self.most_s = FILLED * room / self.bytes_per_s
        if not self.rest:
            self.budget_s = self.most_s

    def fitted(self, padded_s: float) -> None:
        """Notes that a batch of this size fitted into memory.

        If it nearly filled the budget, the next may be larger.
        """
        if padded_s <= 0.7 * self.budget_s:
            return
        if self.rest:
            self.rest -= 1
        elif self.growing or self.most_s is not None:
            grown_s = self.budget_s * self.growth
            self.budget_s = grown_s if self.most_s is None else max(self.budget_s, min(self.most_s, grown_s))

    def did_not_fit(self, padded_s: float) -> None:
        """Notes that a batch of this size did not fit into memory: halves the budget."""
        if not self.growing and self.most_s is None:
            self.most_s = self.budget_s
        self.budget_s = min(self.budget_s, padded_s) / 2
        self.rest, self.pause = self.pause, 2 * self.pause
