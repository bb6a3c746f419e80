"""`session_wer@RULE`: joined transcripts of a session against its reference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.messages import Diagnostic
from codec_bench.text.rules import get_rule
from codec_bench.types import Score

RULE = "official/open-asr/2026-06-22"
SESSION, PART_NUMBER = "session", "part"
"""The fields of an answer's session, and of its part number."""
GAPS = Diagnostic("missing_parts")
"""The flag of a session whose parts are not 0, 1, 2, ... without a gap."""


class SessionWer(AnswerMetric):
    """Word error rate of sessions that a model transcribes in parts. Lower is better.

    The answers to the parts of a session are joined by a space in order; blank ones add nothing. Every part has the
    rate of its session and an equal share of its errors and words: the sum over all parts is that of all sessions, and
    an item is not one part's own rate. The words of a part without an answer are missing from its session.

    Args:
        point: the rule that compares the texts; None for the Open ASR leaderboard's.
    """

    higher_is_better = False
    bounds = (0.0, None)
    range: tuple[float | None, float | None] = (0.0, None)
    aggregate = "ratio"
    whole_set = True
    needs = (SESSION, PART_NUMBER)
    paper = "Srivastav et al.: Open ASR Leaderboard, 2025"
    source = (
        "github.com/huggingface/open_asr_leaderboard d1e99b2, normalizer/eval_utils.py merge_chunked_manifest: "
        "equal counts"
    )

    def __init__(self, point: str | None = None) -> None:
        self._rule = get_rule(point or RULE)
        self.name = "session_wer" + (f"@{point}" if point else "")
        self.protocol = f"session_wer/{self._rule.name}-1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per part; `detail` has the number of `parts` of its session."""
        sessions: dict[tuple[str, int], list[tuple[float, int]]] = defaultdict(list)
        seen: Counter[tuple[str, float]] = Counter()
        scores: dict[int, Score] = {}
        for index, answer in enumerate(answers):
            try:
                part_number = float(answer.fields[PART_NUMBER])
            except (TypeError, ValueError):
                reason = Diagnostic("part_not_number", id=answer.id, part=answer.fields[PART_NUMBER])
                scores[index] = Score.undefined(reason, self.protocol)
                continue
            session = str(answer.fields[SESSION])
            # Several answers to one part belong to several transcripts of the session.
            sessions[session, seen[session, part_number]].append((part_number, index))
            seen[session, part_number] += 1
        for held in sessions.values():
            parts = sorted(held)
            score = self._session([answers[index] for _, index in parts], [part_number for part_number, _ in parts])
            scores |= {index: score for _, index in parts}
        return [scores[index] for index in range(len(answers))]

    def worst(self, answer: Answer) -> Score:
        """None: a missing part counts in its session already."""
        return Score.undefined(Diagnostic("part_of_session"), self.protocol)

    def _session(self, answers: Sequence[Answer], parts: Sequence[float]) -> Score:
        """The score of each part of a session: its rate, and an equal share of its counts.

        Args:
            parts: the parts' numbers in order; gaps are flagged.
        """
        first = answers[0]
        if not first.references:
            return Score.undefined(Diagnostic("session_without_reference", id=first.id), self.protocol)
        estimate = " ".join(text for answer in answers if (text := answer.text.strip()))
        (compared,) = self._rule.compare(
            reference=[first.references[0]], estimate=[estimate], language=[first.language], unit=None
        )
        value = self._rule.item_value(compared)
        if value is None:
            return Score.undefined(compared.note or Diagnostic("session_without_words"), self.protocol)
        above, below = self._rule.share(compared)
        gaps = {} if list(parts) == list(range(len(parts))) else {"flag": GAPS}
        detail = {"parts": len(answers), **gaps}
        return Score.ok(
            value, self.protocol, numerator=above / len(answers), denominator=below / len(answers), detail=detail
        )
