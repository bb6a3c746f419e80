"""Options that people choose, and those that runs and judges read from answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from codec_bench.apps.agreement.panel import Rater
from codec_bench.apps.agreement.raters import READ, RatedItem, letters_in, name_of
from codec_bench.benchmark.reading.choices import choices_of, named
from codec_bench.errors import UserError
from codec_bench.store.answers import exchanges, has_answers
from codec_bench.store.record import Run

NO_OPTION = "(none)"
UNREAD = "no option could be read"


@dataclass(slots=True)
class Options:
    """Options of the questions of runs.

    Args:
        choices: by item, the options of its question by letter.
        read: by reader and item, the option; None where it read none.
    """

    choices: dict[RatedItem, Mapping[str, str]] = field(default_factory=dict)
    read: dict[str, dict[RatedItem, str | None]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Options:
        """Read the options of runs; raises UserError for a run without answers."""
        options = cls()
        for run in runs:
            if not has_answers(run):
                raise UserError(
                    f"'{run.folder}' holds no answers, so no option was read", hint="name a run of a benchmark"
                )
            name = name_of(run)
            (system,) = run.systems
            for exchange in exchanges(run):
                item = RatedItem(name, system, exchange.question.id)
                options.choices[item] = choices_of(exchange.question.fields)
                parsed = exchange.reading.parsed if exchange.reading is not None else None
                options.read[READ][item] = None if parsed is None else options.named(parsed, item)
            for judge, id, letter in letters_in(run, system):
                options.read[judge][RatedItem(name, system, id)] = letter
        return options

    def named(self, text: str, item: RatedItem) -> str:
        """Return the letter of an option if known, from its letter or text."""
        plain = " ".join(text.split()).casefold()
        choices = self.choices.get(item, {})
        option = named(text, choices)
        if option:
            return min(option)
        return NO_OPTION if plain in ("none", "no option", "-") else plain.upper() if len(plain) == 1 else plain

    def raters(self, items: Sequence[RatedItem], labels: dict[str, int]) -> list[Rater]:
        """List aligning judges and the runs' reading; new options extend `labels`."""
        all_raters = []
        for reader in sorted(self.read, key=lambda name: name == READ):
            answers = [self.read[reader].get(item) for item in items]
            values = [np.nan if label is None else float(labels.setdefault(label, len(labels))) for label in answers]
            unread = sum(label is None for label in answers)
            missing = {UNREAD: unread} if unread else {}
            all_raters.append(
                Rater(reader, "run" if reader == READ else "judge", np.array(values, np.float64), {}, missing)
            )
        return all_raters
