"""Ratings: a metric whose numbers are a judge's verdicts.

Conventions
    What comes from a model or from data is put between marks that nobody can foresee, so that an answer cannot pass for
    the judge's instructions. A reply that is not one clear verdict is `unparsed`; it is never taken for a number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.judges.replies import Verdict, load_reply
from codec_bench.judges.rubric import load_rubric
from codec_bench.metrics.answers.base import Answer
from codec_bench.registry import Spec
from codec_bench.types import Message, Request, Response, Score

STEM = "rating"
_SEPARATOR = "#"


def is_rating(name: str) -> bool:
    """Whether a metric's name is that of a rating: `rating[RUBRIC]`."""
    return name.startswith(f"{STEM}[")


def load_rating(name: str, judge: str | None = None) -> Rating:
    """The rating of a name such as `rating[voicebench-open]`.

    Args:
        judge: the model that gives the verdicts; it belongs to the protocol.

    Raises:
        UnknownName: there is no such rubric. UserError: none was named.
    """
    spec = Spec.parse(name)
    if spec.name != STEM or spec.argument is None or spec.point is not None:
        raise UserError(f"'{name}' names no rubric", hint=f"expected {STEM}[RUBRIC]; see codec-bench list rubrics")
    return Rating(spec.argument, judge)


class Rating:
    """What a judge says of an answer; the mean over all answers. Which way is better is the rubric's to say.

    Args:
        rubric: by name. judge: the model that is asked, or None while none is known.
    """

    aggregate = "mean"
    kind = "answer"

    def __init__(self, rubric: str, judge: str | None = None) -> None:
        self.rubric = load_rubric(rubric)
        self.name = f"{STEM}[{rubric}]"
        self.protocol = f"{STEM}/{rubric}-{self.rubric.digest}" + (f"/{judge}" if judge else "")
        self.unit, self.range = self.rubric.unit, self.rubric.range
        self.higher_is_better = self.rubric.higher_is_better
        self.paper, self.source, self.summary = self.rubric.paper, self.rubric.source, self.rubric.summary
        self._read = load_reply(self.rubric.reply)

    def requests(self, answer: Answer, sound: Clip | None, seed: int) -> list[Request] | Score:
        """What the judge is asked about one answer, or the score where it cannot be asked.

        Args:
            sound: of the answer, where there is one.
        """
        rubric = self.rubric
        absent = [name for name in rubric.needs if answer.fields.get(name) is None]
        if rubric.compares and not answer.references:
            absent.append("reference")
        if absent:
            return Score.refused(f"the question has no {' and no '.join(absent)}", self.protocol)
        if rubric.hears and sound is None:
            return Score.failed("there is no sound for the judge to hear", self.protocol)
        orders = (False, True) if rubric.swap else (False,)
        made = []
        for time in range(rubric.times):
            for swapped in orders:
                parameters = dict(rubric.parameters)
                if parameters.get("temperature"):
                    parameters["seed"] = _drawn(seed, answer.id, time)
                messages = self._messages(answer, sound if rubric.hears else None, swapped)
                key = f"{answer.id}{_SEPARATOR}{time}{'s' if swapped else ''}"
                made.append(Request(key, messages, {}, "text", parameters))
        return made

    def score(self, answers: int, responses: Mapping[str, Response]) -> Score:
        """The score from all replies about one answer, by the request's id.

        Args:
            answers: how many replies were asked for.
        """
        verdicts: list[Verdict] = []
        for key, response in sorted(responses.items()):
            if response.status != "ok" or response.text is None:
                return Score.failed(f"the judge: {response.reason or 'gave no text'}", self.protocol)
            read = self._read(response.text)
            if not isinstance(read, Verdict):
                return Score(None, "unparsed", f"the judge's reply: {read.reason}", self.protocol)
            verdicts.append(read if not key.endswith("s") else Verdict(tuple(reversed(read.values))))
        if len(verdicts) != answers:
            return Score.failed(f"{len(verdicts)} of {answers} verdicts came", self.protocol)
        own = [verdict.values[-1] for verdict in verdicts]
        detail: dict[str, Any] = {"verdicts": own, "replies": [r.text for _, r in sorted(responses.items())]}
        if self.rubric.compares:
            detail["of_reference"] = fmean(verdict.values[0] for verdict in verdicts)
        return Score.ok(_combined(own, self.rubric.combine), self.protocol, detail=detail)

    def worst(self, answer: Answer) -> Score:
        """The end of the scale: what an answer adds that was never given or never judged."""
        return Score.ok(self.range[0 if self.higher_is_better else 1], self.protocol)

    def _messages(self, answer: Answer, sound: Clip | None, swapped: bool) -> tuple[Message, ...]:
        from codec_bench.benchmark.prompt import render_text

        mark = hashlib.blake2b(f"{answer.id}\0{answer.text}".encode(), digest_size=6).hexdigest()
        reference = " / ".join(answer.references)
        values = {k: v for k, v in answer.fields.items() if not isinstance(v, (Clip, bytes))}
        values |= {
            "answer": _fenced("answer", answer.text, mark),
            "reference": _fenced("reference", reference, mark),
            "question": _fenced("question", str(values.get("question", "")), mark),
        }
        first, second = ("answer", "reference") if swapped else ("reference", "answer")
        texts = {"answer": answer.text, "reference": reference}
        values |= {"first": _fenced("first", texts[first], mark), "second": _fenced("second", texts[second], mark)}
        what = f"the rubric of '{self.name}' for '{answer.id}'"
        turns = []
        if self.rubric.system is not None:
            turns.append(Message("system", (render_text(self.rubric.system, values, what),)))
        asked: tuple[str | Clip, ...] = (render_text(self.rubric.prompt, values, what),)
        turns.append(Message("user", asked if sound is None else (sound, *asked)))
        return tuple(turns)


def id_of(request: Request) -> str:
    """The question's id behind a judge's request."""
    return request.id.rpartition(_SEPARATOR)[0]


def _fenced(what: str, text: str, mark: str) -> str:
    return f"<{what} {mark}>\n{text}\n</{what} {mark}>"


def _combined(values: Sequence[float], how: str) -> float:
    if how == "mean":
        return fmean(values)
    return float(sum(value > 0.5 for value in values) * 2 > len(values))


def _drawn(seed: int, id: str, time: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}:{id}:{time}".encode(), digest_size=4).digest(), "big") >> 1
