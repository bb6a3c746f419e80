"""Result files of other toolkits, read as items with scores: VERSA's and UltraEval-Audio's.

Conventions
    A metric keeps the toolkit's name with the toolkit behind it (`utmos[imported/versa]`), and its protocol begins with
    `imported/`, so that an old number is never taken for one of this package's.
    Nothing is scaled. What is no finite number is a failure of its item, with the text that stands there.
    VERSA counts insertions, deletions, replacements and hits of each item; they become one error rate, whose value is that of
    the corpus, and which is declared as one. Other metrics are means over the items of which nothing more is known: neither what a
    value can be at least and at most, nor whether it counts errors.

Sources: the files that `versa/bin/scorer.py` writes (JSON lines, or Python literals by versions of before 2025) and the rules of
`versa/result_summary.py` for which fields are scores; `audio_evals/recorder.py` of UltraEval-Audio (JSON lines with `type`, `id`
and `data`).
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.errors import UserError
from codec_bench.types import Sample, Score

MARK = "imported/"
"""How the protocols of numbers begin that another toolkit computed."""
_RESERVED = {
    "key", "status", "provenance", "metadata", "model", "model_id", "model_revision", "protocol_id", "protocol_version",
    "protocol_digest", "bank_schema_version", "prompt_mode", "seed", "candidate_order",
}  # fmt: skip
_OPERATION = re.compile(r"(?P<rate>(?:.*_)?(?:wer|cer|per))_(?P<operation>insert|delete|replace|equal)")
_OPERATIONS = ("insert", "delete", "replace", "equal")
_LOWER = re.compile(r"(?:^|[_-])(?:wer|cer|per|mcd|f0_?rmse|lsd|llr|wss|warpq|rtf|nomad)\b", re.ASCII)
_HIGHER = re.compile(
    r"^(?:pesq|stoi|estoi|utmos|utmosv2|visqol|dns_\w+|nisqa|plcmos|spk_similarity|speech_bert|speech_bleu|f0_?corr|si[-_]snr|"
    r"ci[-_]sdr|sdr|sir|sar|simo|speaker_sim|OVRL|SIG|BAK|P808_MOS|P_SIG|P_BAK|P_OVRL|match|acc|bleu|gpt_score|geval)$"
)


@dataclass(slots=True)
class Imported:
    """What a result file holds.

    Args:
        toolkit: whose. samples: the items, in their order. scores: by item and metric.
        metrics: the facts of the metrics. failed: by item, why it has no result at all.
    """

    toolkit: str
    samples: list[Sample] = field(default_factory=list)
    scores: dict[str, dict[str, Score]] = field(default_factory=dict)
    metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def read_versa(path: Path) -> Imported:
    """Reads a result file of VERSA: a line for each utterance, with its `key` and its scores.

    Raises:
        UserError: the file cannot be read, holds no score, a line is no mapping, or an utterance is in it twice.
    """
    found = Imported("versa")
    lines = dict[str, dict[str, Any]]()
    for number, record in _records(path):
        key = record.get("key")
        if not isinstance(key, str) or not key:
            raise UserError(f"'{path}', line {number}: there is no 'key' that names the utterance")
        if key in lines:
            raise UserError(
                f"'{path}', line {number}: the utterance '{key}' is in the file twice",
                hint="a run holds an utterance once; import the results of two systems one by one",
            )
        lines[key] = record
    names = {name for record in lines.values() for name, value in record.items() if _is_score(name, value)}
    rates = {match["rate"] for name in names if (match := _OPERATION.fullmatch(name))}
    plain = sorted(name for name in names if not _OPERATION.fullmatch(name) and name not in rates)
    for name in [*plain, *sorted(rates)]:
        found.metrics[_named(name, found)] = _facts(name, found.toolkit, "ratio" if name in rates else "mean")
    for key, record in lines.items():
        found.samples.append(Sample(key, None, text=_text(record, "ref")))
        of = found.scores[key] = {}
        for name in plain:
            of[_named(name, found)] = _score(record.get(name), _protocol(name, found), name in record)
        for name in rates:
            of[_named(name, found)] = _rate(record, name, _protocol(name, found))
    return _whole(found, path)


def read_ultraeval(path: Path) -> Imported:
    """Reads a result file of UltraEval-Audio: a line for each step of each item, of which `eval` and `error` are the results.

    Raises:
        UserError: the file cannot be read, holds no score, or a line is not of its form.
    """
    found = Imported("ultraeval-audio")
    results = dict[str, dict[str, Any]]()
    for number, record in _records(path):
        kind, item, data = record.get("type"), record.get("id"), record.get("data")
        if kind is None or item is None or not isinstance(data, dict):
            raise UserError(f"'{path}', line {number}: expected a mapping with 'type', 'id' and 'data'")
        if kind == "eval":
            results[str(item)] = data
            found.failed.pop(str(item), None)
        elif kind == "error" and str(item) not in results:
            said = str(data.get("info", "no reason was recorded")).strip().splitlines()
            found.failed[str(item)] = said[-1] if said else "no reason was recorded"
    names = sorted(
        {name for data in results.values() for name, v in data.items() if name not in ("pred", "ref") and _number(v) is not None}
    )  # fmt: skip
    for name in names:
        facts = _facts(name.rstrip("%"), found.toolkit, "mean")
        found.metrics[_named(name.rstrip("%"), found)] = {**facts, "unit": "%" if name.endswith("%") else ""}
    for item in [*results, *found.failed]:
        data = results.get(item, {})
        found.samples.append(Sample(item, None, text=_text(data, "ref")))
        found.scores[item] = {
            _named(name.rstrip("%"), found): _score(data.get(name), _protocol(name.rstrip("%"), found), name in data)
            for name in names
            if item in results
        }
    return _whole(found, path)


READERS: Mapping[str, Callable[[Path], Imported]] = {"versa": read_versa, "ultraeval": read_ultraeval}


def _whole(found: Imported, path: Path) -> Imported:
    if not found.metrics:
        raise UserError(f"'{path}' holds no score", hint=f"name a result file of {found.toolkit}")
    return found


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a file as mappings, each with its number."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"'{path}' is not UTF-8 text (byte {error.start})") from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        record = _parsed(line)
        if not isinstance(record, dict) or not all(isinstance(name, str) for name in record):
            raise UserError(f"'{path}', line {number}: expected a JSON object; it begins with '{line.strip()[:60]}'")
        yield number, record


def _parsed(line: str) -> Any:
    """A line of JSON, or of a Python literal, in which `nan` and `inf` may stand; None if it is neither."""
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
    """Puts numbers in the place of the names by which Python writes those that are not finite."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name is a number here, or stays what it is, which is then refused."""
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


def _is_score(name: str, value: Any) -> bool:
    if name in _RESERVED or name.startswith("_") or "text" in name.lower():
        return False
    return value is None or (_number(value) is not None and not isinstance(value, bool))


def _number(value: Any) -> float | None:
    """A number, finite or not; None for anything else. True and False are the matches of UltraEval-Audio."""
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return math.inf


def _score(value: Any, protocol: str, there: bool) -> Score:
    number = _number(value)
    if number is not None and math.isfinite(number):
        return Score.ok(number, protocol)
    return Score.failed(
        f"the file holds {json.dumps(value, default=str)[:80]}" if there else "the file holds no value", protocol
    )


def _rate(record: Mapping[str, Any], name: str, protocol: str) -> Score:
    """The error rate of an utterance from its counts."""
    counts = [_number(record.get(f"{name}_{operation}")) for operation in _OPERATIONS]
    if any(count is None or not math.isfinite(count) or count < 0 for count in counts):
        return Score.failed("the file does not hold all four counts of this error rate", protocol)
    insertions, deletions, substitutions, hits = (float(count or 0) for count in counts)
    errors, words = insertions + deletions + substitutions, deletions + substitutions + hits
    detail = {"insertions": insertions, "deletions": deletions, "substitutions": substitutions, "hits": hits}
    if not words:
        return Score.undefined("the reference has no word", protocol)
    return Score.ok(errors / words, protocol, numerator=errors, denominator=words, detail=detail)


def _named(name: str, found: Imported) -> str:
    return f"{name}[{MARK}{found.toolkit}]"


def _protocol(name: str, found: Imported) -> str:
    return f"{MARK}{found.toolkit}/{name}"


def _facts(name: str, toolkit: str, aggregate: str) -> dict[str, Any]:
    better = False if _LOWER.search(name) else True if _HIGHER.match(name) else None
    return {
        "protocol": f"{MARK}{toolkit}/{name}",
        "unit": "",
        "higher_is_better": better,
        "aggregate": aggregate,
        "kind": "single",
        **({"bounds": [0.0, None]} if aggregate == "ratio" else {}),
    }


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    return value if isinstance(value, str) else None
