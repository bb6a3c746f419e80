"""Ratings: a metric whose numbers are a judge's verdicts.

Conventions
    What comes from a model or from data is put between marks that nobody can foresee, so that an answer cannot pass for
    the judge's instructions. A reply that is not one clear verdict is `unparsed`; it is never taken for a number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from statistics import fmean
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.errors import UserError
from codec_bench.judges import replies
from codec_bench.judges.replies import Verdict
from codec_bench.judges.rubric import load_rubric
from codec_bench.metrics.answers.base import Answer
from codec_bench.registry import Spec
from codec_bench.types import Message, Request, Response, Score

STEM = "rating"
_SEPARATOR = "#"
_SWAPPED = "s"


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
    kind = STEM

    def __init__(self, rubric: str, judge: str | None = None) -> None:
        self.rubric = load_rubric(rubric)
        self.name = f"{STEM}[{rubric}]"
        self.protocol = f"{STEM}/{rubric}-{self.rubric.digest}" + (f"/{judge}" if judge else "")
        self.unit, self.range = self.rubric.unit, self.rubric.range
        self.higher_is_better = self.rubric.higher_is_better
        self.paper, self.source, self.summary = self.rubric.paper, self.rubric.source, self.rubric.summary

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
                key = f"{answer.id}{_SEPARATOR}{time}{_SWAPPED if swapped else ''}"
                made.append(Request(key, messages, {}, "text", parameters))
        return made

    def score(self, answer: Answer, asked: int, responses: Mapping[str, Response]) -> Score:
        """The score of an answer from the judge's replies, by the request's id.

        Args:
            asked: how many replies were asked for.
        """
        told = sorted(responses.items())
        for _, response in told:
            if response.status != "ok" or response.text is None:
                return Score.failed(f"the judge: {response.reason or 'gave no text'}", self.protocol)
        if len(told) != asked:
            return Score.failed(f"{len(told)} of {asked} verdicts came", self.protocol)
        texts = [response.text for _, response in told]
        detail: dict[str, Any] = {"replies": texts}
        if self.rubric.reply.startswith("official/"):
            verdicts = [replies.read_official(self.rubric.reply, texts)]
        else:
            verdicts = [self._read(text, answer) for text in texts]
        unread = next((verdict.reason for verdict in verdicts if verdict.reason is not None), None)
        if unread is not None:
            return Score(None, "unparsed", f"the judge's reply: {unread}", self.protocol, detail=detail)
        if self.rubric.compares:
            pairs = [_ordered(verdict, key) for (key, _), verdict in zip(told, verdicts)]
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
        """The end of the scale: what an answer adds that was never given or never judged."""
        return Score.ok(self.range[0 if self.higher_is_better else 1], self.protocol)

    def _messages(self, answer: Answer, sound: Clip | None, swapped: bool) -> tuple[Message, ...]:
        from codec_bench.benchmark.prompt import render_text

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
    """The question's id behind a judge's request."""
    return request.id.rpartition(_SEPARATOR)[0]


def _fenced(what: str, text: str, mark: str) -> str:
    return f"<{what} {mark}>\n{text}\n</{what} {mark}>"


def _ordered(verdict: Verdict, key: str) -> tuple[float, float]:
    """(rating of the reference, rating of the answer), whichever stood first."""
    first, second = verdict.values["first"], verdict.values["second"]
    return (second, first) if key.endswith(_SWAPPED) else (first, second)


def _drawn(seed: int, id: str, time: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}:{id}:{time}".encode(), digest_size=4).digest(), "big") >> 1
