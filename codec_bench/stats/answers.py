"""Counts, costs and times of the answers of a benchmark's run, and their models."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.messages import from_codes
from codec_bench.stats.recorded import SystemItems
from codec_bench.stats.summary_json import UNSET
from codec_bench.stats.summary_types import Answers, Count, CutAudio, Quantiles, ServedModel, Wording
from codec_bench.store.answers import TOO_LONG, draws_of, has_answers
from codec_bench.store.reasoning import MARKS, cut_reasoning
from codec_bench.store.record import Run, recorded_request
from codec_bench.store.rows import NO_ANSWER


def answers_of(run: Run) -> Answers | None:
    """Counts, costs and times of a run's answers; None without questions."""
    if not has_answers(run):
        return None
    meta = run.meta
    status = dict(run.query("SELECT status, COUNT(*) FROM answers GROUP BY status"))
    requests = sum(status.values())
    cached, cut, cut_s, at_limit, too_long = run.query(
        "SELECT TOTAL(cached), TOTAL(cut_s > 0), TOTAL(cut_s), TOTAL(finish = 'length'), TOTAL(finish = ?) "
        "FROM answers",
        (TOO_LONG,),
    )[0]
    known = "SELECT TOTAL(cut_s), TOTAL(sound_s) FROM answers WHERE sound_s IS NOT NULL"
    unheard_s, sound_s = run.query(known)[0]
    thoughts = _count_reasoning(run)
    usage = run.query(
        "SELECT j.key, SUM(j.value) FROM answers a, json_each(a.usage) j "
        "WHERE j.key NOT IN ('cost_usd', 'cost_unsure_usd') GROUP BY j.key ORDER BY j.key"
    )
    spent, unsure, unpriced = run.query(
        "SELECT TOTAL(json_extract(usage, '$.cost_usd')), TOTAL(json_extract(usage, '$.cost_unsure_usd')), "
        "TOTAL(json_extract(usage, '$.cost_usd') IS NULL) FROM answers WHERE status = 'ok' AND NOT cached"
    )[0]
    canaries = meta.get("canary") or []
    counted = Counter(dict(usage))
    for canary in canaries:
        counted.update(canary.get("usage", {}))
        unpriced += canary.get("unpriced", 0)
    spent, unsure = spent + counted.pop("cost_usd", 0.0), unsure + counted.pop("cost_unsure_usd", 0.0)
    share_of = lambda n: Count(int(n), n / requests if requests else 0.0)  # noqa: E731
    served, is_each = _served(run), (meta.get("config") or {}).get("prompts") == "each"
    return Answers(
        asked=requests,
        each_wording=max(1, len(wordings_of(meta))) if is_each else UNSET,
        draws=1 + max((draw for _, draw in draws_of(run).values()), default=0),
        failed={name: count for name, count in sorted(status.items()) if name != "ok"},
        cached=int(cached),
        at_limit=share_of(at_limit),
        decoding=from_codes(meta.get("decoding")),
        asked_for=_requested_model(run),
        served=served,
        alias=_alias(meta, served),
        judging=from_codes(meta.get("judging")),
        choices=meta.get("choices"),
        canary=_canary(meta.get("canary")),
        cut=CutAudio(int(cut), cut / requests if requests else 0.0, cut_s, unheard_s / sound_s if sound_s else None),
        too_long=share_of(too_long),
        with_reasoning=share_of(thoughts) if thoughts else UNSET,
        usage=dict(sorted(counted.items())),
        # If the price of one answer is not known, the sum of the others is not the cost of all.
        **cost_of(None if unpriced else spent, unsure),
        latency_s=_time_quantiles(run, "latency_s"),
        first_s=_time_quantiles(run, "first_s"),
        **_rtfx(run),
    )


def _count_reasoning(run: Run) -> int:
    where = " OR ".join("text LIKE ?" for _ in MARKS)
    texts = run.query_lazily(f"SELECT text FROM answers WHERE {where}", tuple(f"%{mark}%" for mark in MARKS))
    return sum(bool(cut_reasoning(text).reasoning) for (text,) in texts)


def _rtfx(run: Run) -> dict[str, Any]:
    """The field `rtfx`: seconds of input audio per second of answering; {} if unknown.

    Times of simultaneous requests add up.
    """
    known = "status = 'ok' AND NOT cached AND sound_s > 0 AND latency_s > 0"
    sound_s, took_s = run.query(f"SELECT TOTAL(sound_s), TOTAL(latency_s) FROM answers WHERE {known}")[0]
    return {"rtfx": sound_s / took_s} if took_s else {}


def wordings_text(count: int) -> str:
    """In how many wordings a question is sent, as text."""
    return f"{count} wordings" if count > 1 else "its only wording"


def cost_of(most_usd: float | None, unsure_usd: float) -> dict[str, Any]:
    """Return the cost fields of a summary: an exact cost or a range in US dollars.

    Args:
        most_usd: the maximum cost; None if unknown.
    """
    if most_usd is None or not unsure_usd:
        return {"cost_usd": most_usd}
    return {"cost_usd": None, "cost_range_usd": (most_usd - unsure_usd, most_usd)}


def missing_answers_by_wording(
    items: SystemItems, groups: Mapping[str, Sequence[int]], texts: Sequence[str]
) -> dict[str, Wording]:
    """Number of missing answers by wording (finished samples in `groups`) and kind."""
    return {
        name: Wording(
            text=texts[int(name) - 1] if name.isdecimal() and 0 < int(name) <= len(texts) else None,
            n=len(numbers),
            **count_missing_answers([items.noted[n] for n in numbers if n in items.noted]),
        )
        for name, numbers in groups.items()
    }


def wordings_of(meta: Mapping[str, Any]) -> list[str]:
    """The wordings of a run's prompt in order; empty if there is one."""
    prompt = recorded_request(meta).get("prompt") or {}
    parts = [item for turn in prompt.get("messages") or () for item in turn.get("content") or ()]
    return next((list(item["wordings"]) for item in parts if isinstance(item, Mapping) and item.get("wordings")), [])


def count_missing_answers(kinds_of_each: Collection[set[str]]) -> dict[str, Any]:
    """Counts of missing answers: all (`no_answer`), and by kind (`ways`).

    Args:
        kinds_of_each: the kinds (of `NO_ANSWER`) of each missing answer.
    """
    counts = {kind: sum(kind in one for one in kinds_of_each) for kind in NO_ANSWER}
    return {"no_answer": len(kinds_of_each), "ways": {kind: count for kind, count in counts.items() if count}}


def _served(run: Run) -> list[ServedModel]:
    """Number of answers by served model and revision, in the order of first answers."""
    rows = run.query(
        "SELECT json_extract(served, '$.model') AS m, json_extract(served, '$.revision') AS r, COUNT(*) FROM answers "
        "WHERE served IS NOT NULL AND (m IS NOT NULL OR r IS NOT NULL) GROUP BY m, r ORDER BY MIN(number)"
    )
    requested = _requested_model(run)
    return [
        ServedModel(
            model, revision, n, is_other_model(requested, model),
            **({"subsets": _subsets_by(run, model, revision)} if len(rows) > 1 else {}),
        )
        for model, revision, n in rows
    ]  # fmt: skip


def _subsets_by(run: Run, model: str | None, revision: str | None) -> dict[str, dict[str, int]]:
    """Count the answers of a served model revision by subset column and value."""
    rows = run.query(
        "SELECT j.key, j.value, COUNT(*) FROM answers a JOIN questions q ON q.number = a.number, json_each(q.subsets) "
        "j WHERE json_extract(a.served, '$.model') IS ? AND json_extract(a.served, '$.revision') IS ? "
        "GROUP BY 1, 2 ORDER BY 1, 2",
        (model, revision),
    )
    out: dict[str, dict[str, int]] = {}
    for column, value, n in rows:
        out.setdefault(column, {})[value] = n
    return out


def _alias(meta: Mapping[str, Any], served: Sequence[ServedModel]) -> str:
    """The model's name if the service (a proxy) reports nothing else, or `UNSET`."""
    server = ((meta.get("service") or [{}])[-1]).get("server") or {}
    alias = server.get("alias", UNSET)
    return UNSET if any(one.revision is not None or one.model not in (None, alias) for one in served) else alias


def _requested_model(run: Run) -> str | None:
    facts = next(iter(run.systems.values()), {})
    name = facts.get("model")
    return name if isinstance(name, str) and name else None


def is_other_model(requested: str | None, answered: str | None) -> bool:
    """Whether another model than requested answered; False if one is unnamed.

    Case and owners or folders are ignored. The answered name may add a date or number, `-latest`, `-preview` or
    `@REVISION`.
    """
    if not requested or not answered:
        return False
    ours, theirs = (name.lower().rstrip("/").removeprefix("models/") for name in (requested, answered))
    last, their_last = ours.rpartition("/")[2], theirs.rpartition("/")[2]
    return not (
        their_last == last or re.fullmatch(rf"{re.escape(last)}(?:@.+|-(?:\d[\d-]*|latest|preview[\d-]*))", their_last)
    )


def _canary(noted: Any) -> dict[str, Any] | None:
    """Counts of repeated questions and equal answers, and the changed comparisons."""
    if not isinstance(noted, list) or not noted:
        return None
    counts = {name: sum(int(one[name]) for one in noted) for name in ("asked", "same")}
    changed = [
        {name: value for name, value in one.items() if name not in ("usage", "unpriced")}
        for one in noted
        if one["same"] < one["asked"]
    ]
    return {**counts, "changed": changed}


def _time_quantiles(run: Run, column: str) -> Quantiles | None:
    """Return the median and 95th percentile of a time column, without cached answers."""
    seconds = [s for (s,) in run.query(f"SELECT {column} FROM answers WHERE {column} IS NOT NULL AND NOT cached")]
    if not seconds:
        return None
    p50, p95 = np.quantile(seconds, [0.5, 0.95])
    return Quantiles(float(p50), float(p95))
