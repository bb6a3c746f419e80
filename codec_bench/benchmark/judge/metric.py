"""`rating[RUBRIC]`: a judge's verdicts by a rubric in YAML (`configs/judge`).

Verdicts of the first judge are `rating[RUBRIC]`, those of another `rating[RUBRIC]@JUDGE`. Texts of models and data are
between unpredictable marks: an answer cannot pass for instructions to the judge. A reply without one clear verdict is
`unparsed`, never a number.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.judge import replies
from codec_bench.benchmark.judge.aligning import score_by_judge, score_by_rule
from codec_bench.benchmark.judge.nearest import options_of, score_by_similarity
from codec_bench.benchmark.judge.published import EMERGENT_TTS, SEVERAL_REPLIES
from codec_bench.benchmark.judge.replies import Verdict
from codec_bench.benchmark.judge.rubric import OWN_FIELDS, load_rubric, with_own_rubrics
from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.benchmark.reading.base import OFFICIAL
from codec_bench.benchmark.reading.choices import chance_of, choices_of
from codec_bench.config.registry import Spec
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
from codec_bench.models import describe_service_end, successor
from codec_bench.store.answers import CALLS
from codec_bench.store.judge_tests import judge_words
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.types import Message, Request, Response, Score

STEM = "rating"
FINISHES = "finishes"
"""Key of the detail that holds the end reason of each of its `replies`, if one was cut."""
_SEPARATOR = "#"
_SWAPPED = "s"


def is_judge_metric(name: str) -> bool:
    """Whether a metric's name is `rating[RUBRIC]`."""
    return name.startswith(f"{STEM}[")


def names_by_judge(name: str, judges: Sequence[str]) -> dict[str, str | None]:
    """Return the recorded names of a metric (`NAME`, `NAME@JUDGE`) with their judges."""
    if not is_judge_metric(name) or not judges:
        return {name: None}
    return {name: judges[0], **{f"{name}@{judge}": judge for judge in judges[1:]}}


def load_judge_metric(name: str, judge: str | None = None, baseline: str = "") -> JudgeMetric:
    """Build the metric of a name such as `rating[voicebench-open]`.

    Args:
        name: the metric's name, without a judge.
        judge: the model, a part of the protocol id; None if it is not known yet.
        baseline: the label of the command's baseline; "" for none.

    Raises:
        UnknownName: there is no such rubric.
        UserError: the name has no rubric.
    """
    spec = Spec.parse(name)
    if spec.name != STEM or spec.argument is None or spec.point is not None:
        raise UserError("no_rubric_named", name=name, hint=f"expected {STEM}[RUBRIC]; see codec-bench list rubrics")
    return JudgeMetric(spec.argument, judge, baseline)


OF_ROUNDS = {"question": "questions", "suggestion": "suggestions"}
"""Names that a template may read of each round, with the column of each."""


def check_rating(name: str, names: set[str], folder: str = "") -> None:
    """Check that a metric's rubric exists and reads only columns of a question.

    Args:
        name: of the metric, `rating[RUBRIC]`.
        names: the names of a question.
        folder: where a rubric's path begins; "" for the working directory.

    Raises:
        UserError: it does not fit, is no template, or reads another name.
    """
    from codec_bench.benchmark.definition.prompt import variables

    rubric = load_judge_metric(with_own_rubrics(name, folder)).rubric
    missing = [need for need in rubric.needs if need not in names]
    if missing:
        raise UserError("rubric_needs_field", name=name, column=missing[0])
    templates = (rubric.system or "", rubric.prompt)
    for round_field, column in OF_ROUNDS.items():
        if column not in names and any(re.search(rf"\.{round_field}\b", text) for text in templates):
            raise UserError("rubric_reads_rounds", name=name, round_field=round_field, column=column)
    known = names | OWN_FIELDS
    criteria = {name for text in templates for name in re.findall(r"\b(\w+) is defined", text)}
    strange = sorted(frozenset[str]().union(*map(variables, templates)) - known - criteria)
    if strange:
        near = difflib.get_close_matches(strange[0], sorted(known), n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
        raise UserError("rubric_reads_no_column", name=name, column=strange[0], hint=hint)


def published_judge(name: str) -> tuple[str, str] | None:
    """The judge model behind a metric's published numbers, or None.

    Returns:
        (model, a text on the end of its service and our test of it).
    """
    judge = load_judge_metric(name).rubric.judged_by if is_judge_metric(name) else None
    if judge is None:
        return None
    return judge, f"{describe_service_end(judge) or 'no end is announced'}; {load_judge_metric(name, judge).tested}"


def succeeding_judge(name: str) -> tuple[str, str] | None:
    """The model that a vendor names as successor of a metric's judge, or None.

    Returns:
        (model, a phrase: its separate protocol, and the result of its judge test). None without a published judge too.
    """
    published = published_judge(name)
    judge = successor(published[0]) if published is not None else None
    if judge is None:
        return None
    metric = load_judge_metric(name, judge)
    return judge, f"a separate protocol, {metric.protocol}; {metric.tested}"


class Alternative(NamedTuple):
    """The answer of a baseline: its text, and its sound if it is spoken."""

    text: str
    sound: Clip | None = None


class JudgeMetric:
    """A metric whose values are a judge model's verdicts by a rubric, averaged.

    Args:
        judge: the model, or None if it is not known yet.
        baseline: the label of the command's baseline, a part of the protocol of rubrics that compare by preference.

    Raises:
        UnknownName: there is no such rubric.
    """

    aggregate = "mean"
    kind = STEM

    def __init__(self, rubric: str, judge: str | None = None, baseline: str = "") -> None:
        self.rubric, self.rubric_name, self.judge = load_rubric(rubric), rubric, judge
        self.name = f"{STEM}[{rubric}]"
        self.protocol = f"{STEM}/{rubric}-{self.rubric.digest}" + (f"/{judge}" if judge else "")
        if baseline and self.prefers:
            self.protocol += f"/beside-{baseline}"
        self.unit, self.range = self.rubric.unit, self.rubric.range
        self.higher_is_better = self.rubric.higher_is_better
        self._also = load_answer_metric(self.rubric.also) if self.rubric.also is not None else None
        self.paper, self.source, self.summary = self.rubric.paper, self.rubric.source, self.rubric.summary

    @property
    def tested(self) -> Diagnostic:
        """The result of its judge's test, as far as this user knows."""
        return judge_words(self.judge, self.protocol, bool(self.rubric.hears))

    @property
    def reads_raw(self) -> bool:
        """Whether the judge reads the raw answer instead of the post-processed one."""
        return self.rubric.aligns is not None or self.rubric.reply == "nearest"

    @property
    def is_official(self) -> bool:
        """Whether it follows a published program, which keeps reasoning in answers."""
        return self.rubric.reply.startswith(OFFICIAL) or self.rubric_name.endswith("-official")

    @property
    def prefers(self) -> bool:
        """Whether the judge says which of two answers is better."""
        return self.rubric.reply in ("preferred", EMERGENT_TTS)

    def requests(
        self,
        answer: Answer,
        sound: Clip | None,
        seed: int,
        alternative: Alternative | None = None,
        earlier: Sequence[Clip | None] = (),
    ) -> list[Request] | Score:
        """Build the requests to the judge about one answer, or score it without the judge.

        Args:
            answer: the answer after post-processing.
            sound: the sound of a spoken answer, or None.
            seed: the run's seed; each request draws its own from it.
            alternative: the other answer, for rubrics that prefer one of two; None takes the expected answer.
            earlier: the sounds of the answers in the rounds before; None for one without a sound.

        Raises:
            UserError: the question lacks a column that the rubric names, or a rendered text is too long.
        """
        rubric = self.rubric
        absent = [name for name in rubric.needs if answer.fields.get(name) is None]
        if rubric.compares and alternative is None and not answer.references:
            absent.append("reference")
        if absent:
            return Score.refused(Diagnostic("no_fields", fields=", ".join(absent)), self.protocol)
        if rubric.aligns is not None and (read := score_by_rule(rubric.aligns, answer, self.protocol)) is not None:
            return read
        if self._also is not None and (decided := self._without_judge(answer, self._also)) is not None:
            return decided
        if rubric.reply == "nearest":
            return self._compared_with_options(answer)
        if rubric.hears and self.prefers and (alternative is None or alternative.sound is None):
            return Score.refused(Diagnostic("baseline_without_sound"), self.protocol)
        if rubric.hears and sound is None:
            return Score.failed(Diagnostic("no_sound_to_judge"), self.protocol)
        before = list(earlier) if rubric.hears == "every" else []
        sounds = [one for one in (*before, sound if rubric.hears else None) if one is not None]
        if None in before:
            reason = Diagnostic("no_sound_of_round", round=before.index(None) + 1)
            return Score.failed(reason, self.protocol)
        criteria = _criteria(answer.fields.get(rubric.each)) if rubric.each is not None else [None]
        if not criteria:
            return Score.refused(Diagnostic("no_criterion", column=rubric.each), self.protocol)
        orders = (_draw_order(answer.id),) if rubric.swap == "drawn" else (False, True) if rubric.swap else (False,)
        built = []
        for time in range(rubric.times):
            for at, criterion in enumerate(criteria):
                for swapped in orders:
                    parameters = dict(rubric.parameters)
                    if parameters.get("temperature") or rubric.times > 1:
                        parameters["seed"] = _draw_seed(seed, answer.id, time)
                    messages = self._messages(answer, sounds, swapped, alternative, criterion)
                    which = "" if criterion is None else f".{at:04d}"
                    key = f"{answer.id}{_SEPARATOR}{time}{which}{_SWAPPED if swapped else ''}"
                    built.append(Request(key, messages, {}, "text", parameters))
        return built

    def _compared_with_options(self, answer: Answer) -> list[Request] | Score:
        """Build the request to an embedding model; score at once what it cannot compare."""
        options = options_of(answer.fields)
        if len(options) < 2:
            return Score.undefined(Diagnostic("option_count", id=answer.id, options=len(options)), self.protocol)
        if not answer.references:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol)
        if not answer.text.strip():
            return replace(self.worst(answer), detail={"flag": Diagnostic("empty_answer_no_option")})
        fields = {"text": answer.text, "texts": tuple(options)}
        return [Request(f"{answer.id}{_SEPARATOR}0", (), fields, "text", dict(self.rubric.parameters))]

    def score(self, answer: Answer, expected: int, responses: Mapping[str, Response]) -> Score:
        """The score of an answer from the judge's replies.

        Args:
            expected: how many replies were requested.
            responses: the replies by the request's id.
        """
        score = self._score_responses(answer, expected, responses)
        ends = [response.finish for _, response in sorted(responses.items())]
        cut = {FINISHES: ends} if "length" in ends else {}
        return replace(score, detail={**score.detail, **cut, CALLS: calls_of(list(responses.values()))})

    def _score_responses(self, answer: Answer, expected: int, responses: Mapping[str, Response]) -> Score:
        """Score an answer by the judge's responses; fail if one is missing or cut."""
        texts: dict[str, str] = {}
        for key, response in sorted(responses.items()):
            if response.status != "ok" or response.text is None:
                cause = as_reason(response.reason)
                why = Diagnostic("judge_without_text") if cause is None else Diagnostic("judge_failed", cause=cause)
                return Score.failed(why, self.protocol)
            # Published programs read cut replies too.
            if response.finish == "length" and not self.rubric.reply.startswith("official/"):
                detail = {"replies": [response.text]}
                why = Diagnostic("judge_reply_cut", characters=len(response.text))
                return Score.unparsed(why, self.protocol, detail=detail)
            texts[key] = response.text if self.is_official else cut_reasoning(response.text).text
        if len(texts) != expected:
            return Score.failed(Diagnostic("verdicts_missing", given=len(texts), asked=expected), self.protocol)
        return self._combine_replies(answer, texts)

    def _combine_replies(self, answer: Answer, texts: Mapping[str, str]) -> Score:
        """Combine the judge's replies, such as both orders of a pair, to one score."""
        if self.rubric.aligns is not None:
            return score_by_judge(next(iter(texts.values())), answer, self.protocol)
        if self.rubric.reply == "nearest":
            return score_by_similarity(next(iter(texts.values())), answer, self.protocol)
        detail: dict[str, Any] = {"replies": list(texts.values())}
        reader, replied = self.rubric.reply, list(texts.values())
        if reader.startswith("official/"):
            followed = self._also is not None  # it keeps answers that break their rule from the judge
            criteria = answer.fields.get("criteria")
            groups = [replied] if reader in SEVERAL_REPLIES else [[text] for text in replied]
            verdicts = [replies.read_official(reader, one, followed=followed, criteria=criteria) for one in groups]
        else:
            verdicts = [self._read(text, answer) for text in replied]
        unread = next((verdict.reason for verdict in verdicts if verdict.reason is not None), None)
        if unread is not None:
            return Score.unparsed(Diagnostic("judge_reply", cause=unread), self.protocol, detail=detail)
        if self.rubric.compares:
            pairs = [_ordered(verdict, key) for key, verdict in zip(texts, verdicts)]
            results = [answered for _, answered in pairs]
            detail |= _compared(pairs, verdicts if self.rubric.swap is True else ())
        else:
            results = [next(iter(verdict.values.values())) for verdict in verdicts]
        detail["verdicts"] = results
        if warning := next((verdict.warning for verdict in verdicts if verdict.warning), None):
            detail["flag"] = warning
        if self.range == (0, 1) and (chance := chance_of(answer.fields, answer.references)) is not None:
            detail["chance"] = chance
        value = min(results) if self.rubric.combine == "all" else fmean(results)
        if self.prefers:
            changed = len(set(results)) > 1
            value = 0.5 if changed else results[0]
            detail |= {"won": float(value == 1), "tied": float(value == 0.5), "changed": float(changed)}
        if self.rubric.combine == "majority":
            name = next(iter(verdicts[0].values))
            agreed = replies.majority(verdicts, name)
            if agreed.reason is not None:
                return Score.unparsed(Diagnostic("judge_failed", cause=agreed.reason), self.protocol, detail=detail)
            value = agreed.values[name]
        return Score.ok(value, self.protocol, detail=detail)

    def _without_judge(self, answer: Answer, also: AnswerMetric) -> Score | None:
        """Score an answer that fails the rubric's rule `also`; None if the judge decides."""
        (fallback,) = also.compute([answer])
        if fallback.status != "ok":
            return replace(fallback, protocol=self.protocol)
        if fallback.value == 1:
            return None
        return replace(self.worst(answer), detail={"also": fallback.value})

    def _read(self, reply: str, answer: Answer) -> Verdict:
        """Read a verdict from a reply in the form that the rubric states."""
        low, high = self.rubric.range
        if self.rubric.reply == "yes-no":
            return replies.read_yes_no(reply, answer=answer.text)
        if self.prefers:
            return replies.read_preferred(reply, answer=answer.text)
        if self.rubric.reply == "pair":
            return replies.read_pair(reply, low=low, high=high, answer=answer.text)
        return replies.read_rating(reply, low=low, high=high, answer=answer.text)

    def worst(self, answer: Answer) -> Score:
        """The worst end of the scale, for failures that count as wrong."""
        return Score.ok(self.range[0 if self.higher_is_better else 1], self.protocol)

    def _messages(
        self,
        answer: Answer,
        clips: Sequence[Clip],
        swapped: bool,
        alternative: Alternative | None = None,
        criterion: str | None = None,
    ) -> tuple[Message, ...]:
        """Render the judge's prompt, with texts of the answer in fences, and the audio.

        Args:
            clips: the audio of the answer, or of all rounds.
            swapped: whether the answer precedes the one that it is compared with.
            alternative: the other answer; None for the reference.
            criterion: of this request, if each criterion has one.
        """
        from codec_bench.benchmark.definition.prompt import render_text

        mark = hashlib.blake2b(f"{answer.id}\0{answer.text}".encode(), digest_size=6).hexdigest()
        reference = " / ".join(answer.references)
        values = {
            name: _fenced(name, value, mark) if isinstance(value, str) else value
            for name, value in answer.fields.items()
            if not isinstance(value, (Clip, bytes))
        }
        values |= {"answer": _fenced("answer", answer.text, mark), "reference": _fenced("reference", reference, mark)}
        values["whole_answer"] = _fenced("answer", answer.raw or answer.text, mark)
        if isinstance(held := answer.fields.get("criteria"), list):
            values["criteria"] = _fenced("criteria", json.dumps(held, ensure_ascii=False, indent=1), mark)
        if criterion is not None:
            values["criterion"] = _fenced("criterion", criterion, mark)
        if isinstance(answer.fields.get("questions"), list):
            values["rounds"] = _rounds(answer, mark)
        options = "\n".join(f"{letter}. {text}" for letter, text in choices_of(answer.fields).items())
        values["options"] = _fenced("options", options, mark)
        first, second = ("answer", "reference") if swapped else ("reference", "answer")
        texts = {"answer": answer.text, "reference": reference if alternative is None else alternative.text}
        values |= {"first": _fenced("first", texts[first], mark), "second": _fenced("second", texts[second], mark)}
        subject = f"the rubric of '{self.name}' for '{answer.id}'"
        turns = []
        if self.rubric.system is not None:
            turns.append(Message("system", (render_text(self.rubric.system, values, subject),)))
        content: tuple[str | Clip, ...] = (render_text(self.rubric.prompt, values, subject),)
        sounds = list(clips)
        if sounds and alternative is not None and alternative.sound is not None:
            sounds = [sounds[0], alternative.sound] if swapped else [alternative.sound, sounds[0]]
        turns.append(Message("user", (*sounds, *content)))
        return tuple(turns)


def calls_of(responses: Sequence[Response]) -> dict[str, Any]:
    """Summarise the judge's calls for the record.

    Returns:
        `n` calls, how many were `cached`, `unpriced` ones without a known price, `usage` sums of the new calls (such as
        `output_tokens` and `cost_usd`), and `served`: the states of the service that replied.
    """
    new = [response for response in responses if not response.cached]
    used = Counter[str]()
    for response in new:
        used.update(response.usage)
    # A failed call may have been charged, but has no usage.
    unpriced = sum("cost_usd" not in response.usage for response in new if response.status == "ok")
    counts = {"n": len(responses), "cached": len(responses) - len(new), "unpriced": unpriced}
    served = {response.state for response in responses if response.state}
    return {**counts, **({"usage": dict(used)} if used else {}), **({"served": sorted(served)} if served else {})}


def id_of(request: Request) -> str:
    """The id of the question that a request to the judge is about."""
    return request.id.rpartition(_SEPARATOR)[0]


def _criteria(held: Any) -> list[str]:
    listed = held if isinstance(held, (list, tuple)) else [held]
    return [str(one).strip() for one in listed if one is not None and str(one).strip()]


def _rounds(answer: Answer, mark: str) -> list[dict[str, str]]:
    """Collect (fenced) question, answer and suggestion of each round for a template.

    Args:
        mark: a random word in the fences' tags.
    """
    question, suggestion = (answer.fields.get(column) for column in OF_ROUNDS.values())
    held = {"question": question, "answer": (*answer.turns, answer.text), "suggestion": suggestion}
    columns = {field: texts for field, texts in held.items() if texts is not None}
    if len({len(texts) for texts in columns.values()}) > 1:
        counts = ", ".join(f"{len(texts)} {name}s" for name, texts in columns.items())
        raise UserError("rounds_of_answer", id=answer.id, counts=counts)
    return [
        {name: _fenced(name, str(text), mark) for name, text in zip(columns, texts)} for texts in zip(*columns.values())
    ]


def _fenced(tag: str, text: str, mark: str) -> str:
    return f"<{tag} {mark}>\n{text}\n</{tag} {mark}>"


def _ordered(verdict: Verdict, key: str) -> tuple[float, float]:
    """(rating of the reference, rating of the answer), whatever the request's order."""
    first, second = verdict.values.values()
    return (second, first) if key.endswith(_SWAPPED) else (first, second)


def _compared(pairs: Sequence[tuple[float, float]], verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Summarise ratings of the reference and the answer: mean, won, tied.

    Args:
        pairs: (reference, answer) of each reply.
        verdicts: in request order if both orders were requested, for the bias of the position; else empty.
    """
    reference, answered = fmean(of for of, _ in pairs), fmean(of for _, of in pairs)
    values = {"of_reference": reference, "won": float(answered > reference), "tied": float(answered == reference)}
    if verdicts:
        values["first_minus_second"] = fmean(
            first - second for first, second in (one.values.values() for one in verdicts)
        )
    return values


def _draw_order(id: str) -> bool:
    """Draw whether the answer is shown before the baseline, as EmergentTTS-Eval does.

    The seed is the number at the end of the question's id, else the id itself.
    """
    digits = re.search(r"\d+$", id)
    seed = int(digits[0]) if digits is not None else int.from_bytes(id.encode(), "big")
    return bool(np.random.default_rng(seed).random() <= 0.5)


def _draw_seed(seed: int, id: str, time: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}:{id}:{time}".encode(), digest_size=4).digest(), "big") >> 1
