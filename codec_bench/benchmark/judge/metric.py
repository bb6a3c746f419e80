"""`rating[RUBRIC]`: a metric whose numbers are a judge's verdicts.

Conventions
    Texts from a model or from data are put between marks that nobody can foresee, so that an answer cannot pass for
    instructions to the judge. A reply that is not one clear verdict is `unparsed`; it never becomes a number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.judge import replies
from codec_bench.benchmark.judge.replies import Verdict
from codec_bench.benchmark.judge.rubric import load_rubric
from codec_bench.benchmark.scoring.metrics.base import Answer
from codec_bench.errors import UserError
from codec_bench.registry import Spec
from codec_bench.types import Message, Request, Response, Score

STEM = "rating"
_SEPARATOR = "#"
_SWAPPED = "s"


def is_judge_metric(name: str) -> bool:
    """Whether a metric's name is `rating[RUBRIC]`, so that a judge gives its numbers."""
    return name.startswith(f"{STEM}[")


def load_judge_metric(name: str, judge: str | None = None) -> JudgeMetric:
    """Builds the metric of a name such as `rating[voicebench-open]`.

    Args:
        name: the metric's name.
        judge: the model that gives the verdicts; its name is a part of the protocol id. None if it is not known yet.

    Raises:
        UnknownName: there is no such rubric.
        UserError: the name has no rubric.
    """
    spec = Spec.parse(name)
    if spec.name != STEM or spec.argument is None or spec.point is not None:
        raise UserError(f"'{name}' names no rubric", hint=f"expected {STEM}[RUBRIC]; see codec-bench list rubrics")
    return JudgeMetric(spec.argument, judge)


class JudgeMetric:
    """The verdicts of a judge; their mean over all answers. The rubric says whether higher is better.

    Args:
        rubric: name of the rubric.
        judge: the model that is asked, or None if it is not known yet.

    Raises:
        UnknownName: there is no such rubric.
    """

    aggregate = "mean"
    kind = STEM

    def __init__(self, rubric: str, judge: str | None = None) -> None:
        self.rubric = load_rubric(rubric)
        self.name = f"{STEM}[{rubric}]"
        self.protocol = f"{STEM}/{rubric}-{self.rubric.digest}" + (f"/{judge}" if judge else "")
        self.unit, self.range = self.rubric.unit, self.rubric.range
        self.higher_is_better = self.rubric.higher_is_better
        self.paper, self.source, self.summary = self.rubric.paper, self.rubric.source, self.rubric.summary

    def requests(self, answer: Answer, sound: Clip | None, seed: int) -> list[Request] | Score:
        """The requests to the judge about one answer, or its score if the judge cannot be asked.

        Args:
            answer: the answer after post-processing.
            sound: the sound of a spoken answer, or None.
            seed: the run's seed; each request draws its own from it.

        Raises:
            UserError: the question lacks a column that the rubric names, or a rendered text is too long.
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
                key = f"{answer.id}{_SEPARATOR}{time}{_SWAPPED if swapped else ''}"
                made.append(Request(key, messages, {}, "text", parameters))
        return made

    def score(self, answer: Answer, asked: int, responses: Mapping[str, Response]) -> Score:
        """The score of an answer from the judge's replies.

        Args:
            answer: the answer that was judged.
            asked: how many replies were asked for.
            responses: the replies by the request's id.
        """
        texts: dict[str, str] = {}
        for key, response in sorted(responses.items()):
            if response.status != "ok" or response.text is None:
                return Score.failed(f"the judge: {response.reason or 'gave no text'}", self.protocol)
            texts[key] = response.text
        if len(texts) != asked:
            return Score.failed(f"{len(texts)} of {asked} verdicts came", self.protocol)
        return self._combined(answer, texts)

    def _combined(self, answer: Answer, texts: Mapping[str, str]) -> Score:
        """One score from all replies to one question, by the request's id."""
        detail: dict[str, Any] = {"replies": list(texts.values())}
        if self.rubric.reply.startswith("official/"):
            verdicts = [replies.read_official(self.rubric.reply, list(texts.values()))]
        else:
            verdicts = [self._read(text, answer) for text in texts.values()]
        unread = next((verdict.reason for verdict in verdicts if verdict.reason is not None), None)
        if unread is not None:
            return Score(None, "unparsed", f"the judge's reply: {unread}", self.protocol, detail=detail)
        if self.rubric.compares:
            pairs = [_ordered(verdict, key) for key, verdict in zip(texts, verdicts)]
            detail["of_reference"] = fmean(reference for reference, _ in pairs)
            own = [answered for _, answered in pairs]
        else:
            own = [next(iter(verdict.values.values())) for verdict in verdicts]
        detail["verdicts"] = own
        if self.rubric.combine == "mean":
            return Score.ok(fmean(own), self.protocol, detail=detail)
        agreed = replies.majority(verdicts)
        if agreed.reason is not None:
            return Score(None, "unparsed", f"the judge: {agreed.reason}", self.protocol, detail=detail)
        return Score.ok(agreed.values["score"], self.protocol, detail=detail)

    def _read(self, reply: str, answer: Answer) -> Verdict:
        low, high = self.rubric.range
        if self.rubric.reply == "yes-no":
            return replies.read_yes_no(reply, answer=answer.text)
        if self.rubric.reply == "pair":
            return replies.read_pair(reply, low=low, high=high, answer=answer.text)
        return replies.read_rating(reply, low=low, high=high, answer=answer.text)

    def worst(self, answer: Answer) -> Score:
        """The worst end of the scale: what a missing or unjudged answer adds if failures count as wrong."""
        return Score.ok(self.range[0 if self.higher_is_better else 1], self.protocol)

    def _messages(self, answer: Answer, sound: Clip | None, swapped: bool) -> tuple[Message, ...]:
        from codec_bench.benchmark.definition.prompt import render_text

        mark = hashlib.blake2b(f"{answer.id}\0{answer.text}".encode(), digest_size=6).hexdigest()
        reference = " / ".join(answer.references)
        values = {
            name: _fenced(name, value, mark) if isinstance(value, str) else value
            for name, value in answer.fields.items()
            if not isinstance(value, (Clip, bytes))
        }
        values |= {"answer": _fenced("answer", answer.text, mark), "reference": _fenced("reference", reference, mark)}
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
    """The id of the question that a request to the judge is about."""
    return request.id.rpartition(_SEPARATOR)[0]


def _fenced(what: str, text: str, mark: str) -> str:
    return f"<{what} {mark}>\n{text}\n</{what} {mark}>"


def _ordered(verdict: Verdict, key: str) -> tuple[float, float]:
    """(rating of the reference, rating of the answer), whichever of the two stood first in the request."""
    first, second = verdict.values["first"], verdict.values["second"]
    return (second, first) if key.endswith(_SWAPPED) else (first, second)


def _drawn(seed: int, id: str, time: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}:{id}:{time}".encode(), digest_size=4).digest(), "big") >> 1
