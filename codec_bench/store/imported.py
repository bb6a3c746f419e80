"""Read results of VERSA, UltraEval-Audio, AudioBench, lm-eval, lmms-eval, Inspect.

A metric keeps its name with the toolkit (`utmos[imported/versa]`), and its protocol starts with `imported/`. A number
for a whole set is one item. Nothing is scaled; a value that is not finite, or a negative error, fails its item. Only
error rates with counts become corpus ratios. Sources: `versa/bin/scorer.py` and `versa/result_summary.py`;
`audio_evals/recorder.py` of UltraEval-Audio; `src/dataset_src/eval_methods` of AudioBench e991641;
`lm_eval.loggers.evaluation_tracker` 0.4; version 2 of `inspect_ai.log.EvalLog`.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, get_args

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk
from codec_bench.store.files import read_json
from codec_bench.text.rule import HALLUCINATED
from codec_bench.types import Sample, Score, Status

MARK = "imported/"
"""Start of the protocols of another toolkit's numbers."""
_OTHER_FILE = "name the file with the scores"
_RESERVED = {
    "key", "status", "provenance", "metadata", "model", "model_id", "model_revision", "protocol_id", "protocol_version",
    "protocol_digest", "bank_schema_version", "prompt_mode", "seed", "candidate_order",
}  # fmt: skip
_OPERATION = re.compile(r"(?P<rate>(?:.*_)?(?:wer|cer|per))_(?P<operation>insert|delete|replace|equal)")
_RATIO = {"aggregate": "ratio", "bounds": [0.0, None]}
"""Facts of a metric with counts and their base."""
_WORDS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_AUDIOBENCH = ("wer", "bleu", "meteor", "acc", "accuracy")
"""AudioBench's names of numbers without a judge."""
_HARNESS_FIELDS = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
"""Fields of a sample of lm-eval and lmms-eval that are no scores."""
_OPERATIONS = ("insert", "delete", "replace", "equal")
_LOWER = re.compile(r"(?:^|[_-])(?:wer|cer|per|mcd|f0_?rmse|lsd|llr|wss|warpq|rtf|nomad)\b", re.ASCII)
_HIGHER = re.compile(
    r"^(?:pesq|stoi|estoi|utmos|utmosv2|visqol|dns_\w+|nisqa|plcmos|spk_similarity|speech_bert|speech_bleu|f0_?corr|"
    r"si[-_]snr|ci[-_]sdr|sdr|sir|sar|simo|speaker_sim|OVRL|SIG|BAK|P808_MOS|P_SIG|P_BAK|P_OVRL|match|acc|bleu|"
    r"gpt_score|geval)$"
)


@dataclass(slots=True)
class Imported:
    """The content of another toolkit's result file.

    Args:
        scores: by item and metric.
        failed: by item, why it has no result.
        suspect, findings: results of the checks of the system, if this package wrote the file.
    """

    toolkit: str
    samples: list[Sample] = field(default_factory=list)
    scores: dict[str, dict[str, Score]] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    suspect: str | None = None
    findings: Sequence[Mapping[str, Any]] = ()


def read_versa(path: Path) -> Imported:
    """Read a result file of VERSA: a line per utterance, with its `key` and scores."""
    imported = Imported("versa")
    lines = dict[str, dict[str, Any]]()
    for number, record in _records(path):
        key = record.get("key")
        if not isinstance(key, str) or not key:
            raise UserError("imported_no_key", path=path, number=number)
        if key in lines:
            raise UserError(
                "imported_twice",
                path=path,
                number=number,
                key=key,
                hint="a run holds an utterance once; import the results of two systems one by one",
            )
        lines[key] = record
    names = {name for record in lines.values() for name, value in record.items() if _is_score(name, value)}
    rates = {match["rate"] for name in names if (match := _OPERATION.fullmatch(name))}
    plain = sorted(name for name in names if not _OPERATION.fullmatch(name) and name not in rates)
    for name in [*plain, *sorted(rates)]:
        imported.metrics[_named(name, imported)] = _metric_facts(
            name, imported.toolkit, "ratio" if name in rates else "mean"
        )
    for key, record in lines.items():
        imported.samples.append(Sample(key, None, text=_text(record, "ref")))
        of = imported.scores[key] = {}
        for name in plain:
            of[_named(name, imported)] = _score(record.get(name), _protocol(name, imported), name in record)
        for name in rates:
            of[_named(name, imported)] = _rate(record, name, _protocol(name, imported))
    return _check_not_empty(imported, path)


def read_ultraeval(path: Path) -> Imported:
    """Read a result file of UltraEval-Audio; results are the `eval` and `error` lines."""
    imported = Imported("ultraeval-audio")
    results = dict[str, dict[str, Any]]()
    for number, record in _records(path):
        kind, item, data = record.get("type"), record.get("id"), record.get("data")
        if kind is None or item is None or not isinstance(data, dict):
            raise UserError("imported_no_mapping", path=path, number=number)
        if kind == "eval":
            results[str(item)] = data
            imported.failed.pop(str(item), None)
        elif kind == "error" and str(item) not in results:
            lines = str(data.get("info", "no reason was recorded")).strip().splitlines()
            imported.failed[str(item)] = lines[-1] if lines else "no reason was recorded"
    cells = (cell for data in results.values() for cell in data.items())
    names = sorted({name for name, v in cells if name not in ("pred", "ref") and _number(v) is not None})
    for name in names:
        facts = _metric_facts(name.rstrip("%"), imported.toolkit, "mean")
        imported.metrics[_named(name.rstrip("%"), imported)] = {**facts, "unit": "%" if name.endswith("%") else ""}
    for item in [*results, *imported.failed]:
        data = results.get(item, {})
        imported.samples.append(Sample(item, None, text=_text(data, "ref")))
        imported.scores[item] = {
            _named(name.rstrip("%"), imported): _score(
                data.get(name), _protocol(name.rstrip("%"), imported), name in data
            )
            for name in names
            if item in results
        }
    return _check_not_empty(imported, path)


def read_audiobench(path: Path) -> Imported:
    """Read a score file of AudioBench: error rates of items, ratings, or one number.

    Ratings are read if the file holds those of all items, else the number of the set.
    """
    imported, held = Imported("audiobench"), read_json(path, hint=_OTHER_FILE)
    rates = next((value for name, value in held.items() if name.startswith("sample_")), None)
    if isinstance(rates, list):
        rate = next(name for name in held if name.startswith("sample_")).removeprefix("sample_")
        for number, record in enumerate(_mappings(rates)):
            words, value = len(str(record.get("reference", "")).split()), _number(record.get(rate))
            score = _score(record.get(rate), _protocol(rate, imported), rate in record)
            if score.value is not None and not words:
                score = Score.undefined(Diagnostic("imported_no_word"), _protocol(rate, imported))
            elif score.value is not None and value is not None:
                score = Score.ok(
                    value, _protocol(rate, imported), numerator=float(round(value * words)), denominator=float(words)
                )
            _add(imported, str(number), {rate: score}, "ratio", text=_text(record, "reference"))
        return _check_not_empty(imported, path)
    for name, value in held.items():
        numbers = value if isinstance(value, dict) else {name: value}
        total, details = _number(numbers.get("judge_score")), _mappings(held.get("details"))
        rated = [_number(one.get("rate_score")) for one in details]
        full = sum(one or 0.0 for one in rated) / len(rated) if rated else 0.0
        if total is not None and rated and any(math.isclose(full * scale, total, rel_tol=1e-9) for scale in (20, 100)):
            for number, one in enumerate(details):
                scored = {name: _score(one.get("rate_score"), _protocol(name, imported), "rate_score" in one)}
                _add(imported, str(number), scored, text=_text(one, "reference"))
        elif total is not None or name in _AUDIOBENCH:
            _add(imported, path.stem, {
                (name if one == "judge_score" else one): _score(number, _protocol(one, imported), True)
                for one, number in numbers.items() if _number(number) is not None
            })  # fmt: skip
    return _check_not_empty(imported, path)


def _read_harness(path: Path, toolkit: str) -> Imported:
    """Results (`.json`) or samples (`.jsonl`) of lm-evaluation-harness and lmms-eval."""
    imported = Imported(toolkit)
    if path.suffix == ".jsonl":
        records = list(_records(path))
        scored = {n for _, record in records for n, value in record.items() if _number(value) is not None}
        for number, record in records:
            if "doc_id" not in record:
                raise UserError("imported_no_doc_id", path=path, number=number)
            names = record.get("metrics")
            if isinstance(names, list) and not all(isinstance(n, str) for n in names):
                raise UserError("imported_metrics", path=path, number=number, names=str(names)[:60])
            # Without a list of the scores, a field is one if it holds a number in some record.
            names = names if isinstance(names, list) else [n for n in record if n in scored - _HARNESS_FIELDS]
            kind = f"/{record['filter']}" if record.get("filter") not in (None, "none") else ""
            scores = {
                f"{n}{kind}": _score(record.get(n), _protocol(f"{n}{kind}", imported), n in record) for n in names
            }
            target = record.get("target")
            _add(imported, str(record["doc_id"]), scores, text=target if isinstance(target, str) else None)
        return _check_not_empty(imported, path)
    held = read_json(path, hint=_OTHER_FILE)
    for config in _mapping(held.get("configs")).values():
        _read_findings(imported, _mapping(_mapping(_mapping(config).get("metadata")).get("codec_bench")).values())
    for task, values in _mapping(held.get("results")).items():
        better = _mapping(_mapping(held.get("higher_is_better")).get(task))
        n = _mapping(_mapping(held.get("n-samples")).get(task)).get("effective")
        values = _mapping(values)
        scores, known = dict[str, Score](), dict[str, bool | None]()
        for key, value in values.items():
            name, _, kind = key.partition(",")
            if not kind or name.endswith("_stderr") or _number(value) is None:
                continue
            error = _number(values.get(f"{name}_stderr,{kind}"))
            shown = name if kind == "none" else f"{name}/{kind}"
            known[shown] = better.get(name)
            detail = {"n": n} | ({} if error is None else {"stderr": error})
            score = _score(value, _protocol(shown, imported), True)
            scores[shown] = Score.ok(score.value, score.protocol, detail=detail) if score.value is not None else score
        if scores and imported.samples:
            raise UserError(
                "imported_several_tasks",
                path=path,
                id=imported.samples[0].id,
                task=task,
                hint="import one at a time: its samples (.jsonl, by --log_samples), or the results of a run of it",
            )
        if scores:
            _add(imported, task, scores, better=known)
    return _check_not_empty(imported, path)


def read_inspect(path: Path) -> Imported:
    """Read a JSON log of Inspect: the scores of its samples, or its totals.

    Letters and words become numbers as in Inspect's `value_to_float`: C is 1, I and N are 0, P is 0.5.
    """
    if path.suffix == ".eval":
        raise UserError("packed_log", path=path, hint=f"inspect log convert {path} --to json --output-dir DIR")
    imported, held = Imported("inspect"), read_json(path, hint=_OTHER_FILE)
    score_facts = {str(one.get("name")): one for one in _mappings(_mapping(held.get("results")).get("scores"))}
    better = {name: _mapping(one.get("metadata")).get("higher_is_better") for name, one in score_facts.items()}
    _read_findings(imported, [one.get("metadata") for one in score_facts.values()])
    samples = _mappings(held.get("samples"))
    several = any(sample.get("epoch", 1) != 1 for sample in samples)
    counted: set[str] = set()
    for sample in samples:
        id = f"{sample.get('id')}#{sample.get('epoch', 1)}" if several else str(sample.get("id"))
        scores: dict[str, Score] = {}
        for name, one in _mapping(sample.get("scores")).items():
            value, more = _mapping(one).get("value"), _mapping(_mapping(one).get("metadata"))
            for key, number in value.items() if isinstance(value, dict) else [(None, value)]:
                shown = name if key is None else f"{name}/{key}"
                score = _score(_of_inspect(number), _protocol(shown, imported), True)
                top, under = _number(more.get("numerator")), _number(more.get("denominator"))
                if score.value is not None and top is not None and under is not None:
                    score = Score.ok(score.value, score.protocol, numerator=top, denominator=under)
                scores[shown] = score
                # The export of this package writes a plain mean's items as values over 1.
                if under is not None and score.numerator == top and score.denominator == under != 1:
                    counted.add(shown)
        for name, why in _mapping(_mapping(sample.get("metadata")).get("without_value")).items():
            if isinstance(why, dict) and why.get("status") in get_args(Status):
                scores[name] = Score(None, why["status"], why.get("reason"), _protocol(name, imported))
        if sample.get("error"):
            imported.failed[id] = str(_mapping(sample["error"]).get("message", "the sample ended with an error"))
        target = sample.get("target")
        _add(imported, id, scores, text=target if isinstance(target, str) else None, better=better)
    for name in counted:
        imported.metrics[_named(name, imported)] |= _RATIO
    if not samples:
        task = str(_mapping(held.get("eval")).get("task") or path.stem)
        totals = {
            f"{name}/{of}": _score(_mapping(number).get("value"), _protocol(f"{name}/{of}", imported), True)
            for name, one in score_facts.items()
            for of, number in _mapping(one.get("metrics")).items()
            if of != "stderr"
        }
        _add(imported, task, totals, better={total: better.get(total.rpartition("/")[0]) for total in totals})
    return _check_not_empty(imported, path)


def _add(
    imported: Imported, id: str, scores: Mapping[str, Score], aggregate: str = "mean", *, text: str | None = None,
    better: Mapping[str, bool | None] | None = None,
) -> None:  # fmt: skip
    """Add an item's scores and the metrics' facts to an import; refuses duplicates."""
    if id not in imported.scores:
        imported.samples.append(Sample(id, None, text=text))
    for name, score in scores.items():
        if _named(name, imported) in imported.scores.get(id, {}):
            raise UserError(
                "imported_two_values", id=id, name=name, hint="import one system, one task and one filter at a time"
            )
        imported.scores.setdefault(id, {})[_named(name, imported)] = score
        facts = imported.metrics.setdefault(_named(name, imported), _metric_facts(name, imported.toolkit, "mean"))
        if aggregate == "ratio" and score.denominator is not None:
            facts |= _RATIO
        if better and better.get(name) is not None:
            facts["higher_is_better"] = better[name]
    imported.scores.setdefault(id, {})


def _read_findings(imported: Imported, facts: Iterable[Any]) -> None:
    """Read the check results of a system, if this package wrote the file."""
    for of in facts:
        held = _mapping(of)
        if isinstance(reason := held.get("suspect"), str) and reason:
            imported.suspect = reason
            imported.findings = [one for one in _mappings(held.get("findings")) if _is_finding(one)]


def _is_finding(held: Mapping[str, Any]) -> bool:
    is_code = isinstance(_mapping(held.get("found")).get("code"), str)
    return isinstance(held.get("check"), str) and held.get("state") in ("suspect", "failed") and is_code


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _of_inspect(value: Any) -> Any:
    """A value of Inspect as a number, else unchanged."""
    if not isinstance(value, str):
        return value
    for known in (value, value.lower()):
        if known in _WORDS:
            return _WORDS[known]
    try:
        return float(value)
    except ValueError:
        return value


READERS: Mapping[str, Callable[[Path], Imported]] = {
    "versa": read_versa, "ultraeval": read_ultraeval, "audiobench": read_audiobench, "inspect": read_inspect,
    "lm-eval": partial(_read_harness, toolkit="lm-eval"), "lmms-eval": partial(_read_harness, toolkit="lmms-eval"),
}  # fmt: skip


def _check_not_empty(imported: Imported, path: Path) -> Imported:
    if not imported.metrics:
        raise UserError("imported_no_score", path=path, hint=f"name a result file of {imported.toolkit}")
    return imported


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield line number and record of a file with a JSON object per line."""
    with on_disk("file_not_readable", path=path):
        text = path.read_text("utf-8-sig")
    for number, line in enumerate(text.split("\n"), 1):  # texts may hold U+2028 and the like
        if not line.strip():
            continue
        record = _parse_line(line)
        if not isinstance(record, dict) or not all(isinstance(name, str) for name in record):
            raise UserError("imported_not_json", path=path, number=number, line=line.strip()[:60])
        yield number, record


def _parse_line(line: str) -> Any:
    """A line of JSON, or of a Python literal with `nan` and `inf`; else None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        pass
    try:
        tree = ast.parse(line.strip(), mode="eval")
        return ast.literal_eval(_Numbers().visit(tree))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


class _Numbers(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


def _is_score(name: str, value: Any) -> bool:
    if name in _RESERVED or name.startswith("_") or "text" in name.lower():
        return False
    return value is None or (_number(value) is not None and not isinstance(value, bool))


def _number(value: Any) -> float | None:
    """A number, finite or not, else None; UltraEval-Audio's matches are booleans."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return math.inf


def _score(value: Any, protocol: str, there: bool) -> Score:
    """Convert a toolkit's value to a score; failed if it is missing or not finite."""
    number = _number(value)
    if number is not None and math.isfinite(number):
        if number < 0 and _LOWER.search(name := protocol.removeprefix(MARK).partition("/")[2]):
            return Score.failed(Diagnostic("imported_negative", number=number, name=name), protocol)
        return Score.ok(number, protocol)
    if not there:
        return Score.failed(Diagnostic("imported_nothing"), protocol)
    return Score.failed(Diagnostic("imported_value", value=json.dumps(value, default=str)[:80]), protocol)


def _rate(record: Mapping[str, Any], name: str, protocol: str) -> Score:
    """Build the word error rate of one item from its counts of edit operations.

    Words recognised where the reference has none are errors, as in VERSA's sums over a file.
    """
    counts = [_number(record.get(f"{name}_{operation}")) for operation in _OPERATIONS]
    if any(count is None or not math.isfinite(count) or count < 0 for count in counts):
        return Score.failed(Diagnostic("imported_counts"), protocol)
    insertions, deletions, substitutions, hits = (float(count or 0) for count in counts)
    errors, words = insertions + deletions + substitutions, deletions + substitutions + hits
    detail: dict[str, Any] = {
        "insertions": insertions,
        "deletions": deletions,
        "substitutions": substitutions,
        "hits": hits,
    }
    if not errors + words:
        return Score.undefined(Diagnostic("imported_no_word"), protocol)
    if not words:
        detail = {**detail, "flag": HALLUCINATED}
    return Score.ok(errors / (words or 1), protocol, numerator=errors, denominator=words, detail=detail)


def _named(name: str, imported: Imported) -> str:
    plain = name.replace("[", "(").replace("]", ")")  # a name has one pair of brackets
    return f"{plain}[{MARK}{imported.toolkit}]"


def _protocol(name: str, imported: Imported) -> str:
    return f"{MARK}{imported.toolkit}/{name}"


def _metric_facts(name: str, toolkit: str, aggregate: str) -> dict[str, Any]:
    """Describe an imported metric; its direction is guessed from its name."""
    better = False if _LOWER.search(name) else True if _HIGHER.match(name) else None
    return {
        "protocol": f"{MARK}{toolkit}/{name}",
        "unit": "",
        "higher_is_better": better,
        "aggregate": aggregate,
        "kind": "single",
        **(_RATIO if aggregate == "ratio" else {}),
    }


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None
