"""Find all mistakes of a definition at once, each with its file and line.

Local data are read row by row (`row_checks`) once the definition has no mistake. No other data and no models are
loaded, and no sound is decoded. A wrong field hides only the mistakes of fields that depend on it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from codec_bench.benchmark.definition.benchmark import Benchmark
from codec_bench.benchmark.definition.finding import DefinitionFinding, Location, findings, fitted, line_of, suggest
from codec_bench.benchmark.definition.loader import FILE, DefinitionEntry, entries_of, find_entry, is_path, own_file
from codec_bench.benchmark.definition.prompt import load_prompt, part_reads, prompt_names, variables
from codec_bench.benchmark.definition.questions import SPEAKER, absent_columns, between_others
from codec_bench.benchmark.definition.schema import BenchmarkSpec, Data, MetricUse, PromptSpec, Template
from codec_bench.config import Lines, load_yaml_with_lines, read_config
from codec_bench.config.registry import Spec, locate_name
from codec_bench.data.table import open_table
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import MissingExtra, MissingResource, UnknownName, UserError

README = "README.md"
_LINE = re.compile(r"^'(?P<file>[^']+)', line (?P<line>\d+)(?:, column \d+)?: (?P<rest>.*)$", re.DOTALL)
_RATING, _RUBRICS = "rating", "judge"
"""The judged metric, and the kind of config of its rubrics."""
_STAND_INS: Mapping[str, Any] = {
    "version": 1, "title": "-", "summary": "-", "category": "-", "kind": "understanding", "prompt": "transcribe",
    "data": {"path": "-", "columns": {"question": "-"}}, "metrics": ["accuracy[exact]"], "primary": "accuracy[exact]",
}  # fmt: skip
"""Values that replace unreadable fields while the others are checked."""
_IMPLICIT = frozenset(("language",))
"""Names that a template may always read, whatever columns the data has."""

CheckRating = Callable[[str, set[str], str], None]
"""Raises a `UserError` if the rubric of a metric's name does not fit, or reads other names of a question than these.

The last text is the folder of the definition, where the path of a rubric begins."""


def validate_benchmark(
    name_or_path: str, check_rating: CheckRating | None = None, *, with_rows: bool = True
) -> list[DefinitionFinding]:
    """Find all mistakes of a benchmark's definition.

    Args:
        name_or_path: the name of one of the project's benchmarks, or the path of a user's own. All benchmarks of the
            definition are checked.
        check_rating: checks the rubrics of its metrics; None checks only their columns.
        with_rows: whether to check the rows of local data too.

    Raises:
        UnknownName: no benchmark has this name.
        UserError: there is no such file.
    """
    file = own_file(name_or_path)[0] if is_path(name_or_path) else find_entry(name_or_path).file
    listed = list(_check_file(file, check_rating, with_rows))
    if not os.path.isfile(os.path.join(os.path.dirname(os.path.abspath(file)), README)):
        hint = "write what the benchmark measures and the licence of its data"
        listed.append(DefinitionFinding(file, None, Diagnostic("no_readme", name=README, file=FILE), hint))
    return _without_repeats(listed)


def validate_prompt(name: str) -> list[DefinitionFinding]:
    """Find all mistakes of one of the project's prompts.

    Raises:
        UnknownName: there is no such prompt.
    """
    if name not in prompt_names():
        raise UnknownName("prompt", name, prompt_names())
    file = files("codec_bench") / "benchmarks" / "prompts" / f"{name}.yaml"
    try:
        document, lines = load_yaml_with_lines(file)
    except UserError as error:
        return [_to_finding(str(file), error)]
    if not isinstance(document, dict):
        return [DefinitionFinding(str(file), 1, Diagnostic("not_a_mapping"))]
    wrong = findings(document, PromptSpec, str(file), lines)
    return wrong or list(_templates(PromptSpec.model_validate(document), str(file), lines))


def _check_file(file: str, check_rating: CheckRating | None, with_rows: bool) -> Iterator[DefinitionFinding]:
    """Check every definition of a file, and optionally its rows."""
    try:
        entries = list(entries_of(file))
        yield from _unused_keys(file)
    except UserError as error:
        yield _to_finding(file, error)
        return
    for entry in entries:
        if isinstance(entry, UserError):
            yield _to_finding(file, entry)
            continue
        yield from findings(entry.document, BenchmarkSpec, file, entry.lines)
        spec, unread = _read(entry.document)
        if spec is not None:
            wrong = list(_check_entry(entry, spec, unread, check_rating))
            yield from wrong or (_rows(entry, spec) if with_rows and not unread else ())


def _rows(entry: DefinitionEntry, spec: BenchmarkSpec) -> Iterator[DefinitionFinding]:
    """Mistakes in the rows of local data."""
    from codec_bench.benchmark.definition.row_checks import row_findings

    try:
        yield from row_findings(Benchmark(entry.name, spec, entry))
    except UserError as error:
        yield _to_finding(entry.file, error)


def _read(document: Mapping[str, Any]) -> tuple[BenchmarkSpec | None, set[str]]:
    """Parse a definition that may have mistakes.

    Returns:
        (the readable part, or None if there is none, names of the unreadable fields).
    """
    asks = document.get("kind") != "codec"
    if asks == (document.get("prompt") is not None):
        return fitted(document, BenchmarkSpec, _STAND_INS)
    spec, unread = fitted({**document, "prompt": _STAND_INS["prompt"] if asks else None}, BenchmarkSpec, _STAND_INS)
    return spec, unread | {"prompt"}


def _unused_keys(file: str) -> Iterator[DefinitionFinding]:
    """Find matrix keys that no `{key}` of the file uses, mostly misspelled names."""
    document, lines = load_yaml_with_lines(file)
    placeholders = set(re.findall(r"\{([a-z][a-z0-9_]*)\}", str(document)))
    for index, row in enumerate(document.get("matrix") or []):
        for key in sorted({str(key) for key in row} - {"set"} - placeholders):
            unused = Diagnostic("unused_matrix_key", name=key)
            yield DefinitionFinding(file, line_of(lines, ("matrix", index, key)), unused, suggest(key, placeholders))


def _check_entry(
    entry: DefinitionEntry, spec: BenchmarkSpec, unread: set[str], check_rating: CheckRating | None
) -> Iterator[DefinitionFinding]:
    """Check the columns, prompts and metrics of one benchmark of a definition.

    Args:
        spec: its readable part.
        unread: the fields that could not be read.
    """
    at = _At(entry.file, entry.lines, named=not unread & {"data", "fields"})
    if at.named:
        yield from _columns(spec, at)
        yield from _missing_columns(entry, spec, at)
    yield from _prompts(spec, at, unread)
    yield from _metrics(entry, spec, at, unread)
    if check_rating is None or not at.named:
        return
    folder = os.path.dirname(os.path.abspath(entry.file))
    for index, use in enumerate(spec.metrics):
        name = use.name if isinstance(use, MetricUse) else use
        if name.partition("[")[0].strip() == _RATING:
            yield from at.tried(("metrics", index), partial(check_rating, name, _names(spec), folder))


def _missing_columns(entry: DefinitionEntry, spec: BenchmarkSpec, at: _At) -> Iterator[DefinitionFinding]:
    """Find columns that a local table lacks, and unreadable data."""
    folder = os.path.dirname(os.path.abspath(at.file))
    path = os.path.join(folder, spec.data.path or "")
    if spec.data.path is None or spec.data.layout != "table" or not os.path.exists(path):
        return
    data, missing = spec.data, set[tuple[str, str, str]]()
    try:
        splits: Sequence[str | None] = data.splits or [data.split]
        for split in splits:
            table = open_table(
                path,
                config=data.config,
                data_dir=data.data_dir,
                split=split,
                revision=None,
                mirror=None,
                limit=1,
                seed=None,
            )
            if table.columns is not None and not table.columns:
                yield at(("data", "path"), Diagnostic("no_rows_in_data", path=data.path))
                return
            missing.update(absent_columns(data, table.columns))
    except MissingExtra:
        return
    except UserError as error:
        yield at(("data", "path"), error.message, error.hint)
        return
    for name, column, setting in sorted(missing):
        message = Diagnostic("column_not_in_data", name=name, column=column, path=data.path)
        hint = between_others(table.columns) or suggest(column, table.columns or ())
        yield at(("data", *setting.split(".")), message, hint)


class _At:
    """Builds findings at places of one definition.

    Args:
        named: whether the names of a question could be read.
    """

    def __init__(self, file: str, lines: Lines, named: bool = True) -> None:
        self.file, self.lines, self.named = file, lines, named

    def __call__(self, location: Location, message: str, hint: str | None = None) -> DefinitionFinding:
        return DefinitionFinding(self.file, line_of(self.lines, location), as_reason(message), hint)

    def tried(self, location: Location, build: Callable[[], Any]) -> Iterator[DefinitionFinding]:
        try:
            build()
        except (MissingExtra, MissingResource):
            pass  # a missing package is not a mistake of the definition
        except UserError as error:
            yield self(location, error.message, error.hint)


def _columns(spec: BenchmarkSpec, at: _At) -> Iterator[DefinitionFinding]:
    """Find settings that name a missing column, and invalid labels or data paths."""
    names = _names(spec)
    if isinstance(spec.fields.get("labels"), str):
        yield at(("fields", "labels"), Diagnostic("labels_as_text"), "labels: [happy, sad]")
    elif spec.fields.get("labels") in ([], {}) and not load_yaml_with_lines(at.file)[0].get("matrix"):
        yield at(("fields", "labels"), Diagnostic("labels_empty"), "labels: [happy, sad]")
    for index, name in enumerate(spec.data.optional):
        if name not in spec.data.columns and not (name == SPEAKER and spec.data.speaker is not None):
            problem = Diagnostic("not_a_column", name=name)
            yield at(("data", "optional", index), problem, suggest(name, spec.data.columns))
    for subset, name in spec.subsets.items():
        if name not in names:
            problem = Diagnostic("subset_without_column", subset=subset, name=name)
            yield at(("subsets", subset), problem, suggest(name, names))
    for name in spec.data.where or {}:
        if not isinstance(spec.data.columns.get(name), str):
            problem = Diagnostic("not_a_single_column", name=name)
            yield at(("data", "where", name), problem, suggest(name, spec.data.columns))
    if spec.data.kinds is not None and spec.data.kinds.column not in spec.data.columns:
        column = spec.data.kinds.column
        problem = Diagnostic("not_a_column", name=column)
        yield at(("data", "kinds", "column"), problem, suggest(column, spec.data.columns))
    for field, column in spec.data.scripts.items():
        if column not in spec.data.columns:
            problem = Diagnostic("not_a_column", name=column)
            yield at(("data", "scripts", field), problem, suggest(column, spec.data.columns))
    if spec.kind == "codec" and "audio" not in spec.data.columns:
        yield at(("data", "columns"), Diagnostic("codec_without_audio"))
    if spec.data.path is not None and not os.path.exists(os.path.join(os.path.dirname(at.file), spec.data.path)):
        yield at(("data", "path"), Diagnostic("no_local_data", path=spec.data.path))


def _names(spec: BenchmarkSpec) -> set[str]:
    """The names that prompts and metrics of a benchmark may read from a question."""
    data: Data = spec.data
    names = {*data.columns, *data.scripts, *spec.fields, *_IMPLICIT} - {"reference"}
    if data.splits:
        names.add("split")
    if data.kinds is not None:
        names |= {data.kinds.field, *(name for constants in data.kinds.names.values() for name in constants)}
    if data.expand is not None:
        names |= {data.expand.field, *filter(None, [data.expand.subset])}
    return names


def _prompts(spec: BenchmarkSpec, at: _At, unread: set[str]) -> Iterator[DefinitionFinding]:
    """Find mistakes in the prompts of a definition, and columns that they lack."""
    named: list[tuple[Location, str | Template]] = []
    if spec.prompt is not None and "prompt" not in unread:
        named.append((("prompt",), spec.prompt))
    named += [(("prompts", key), value) for key, value in spec.prompts.items()]
    for location, prompt in named:
        if isinstance(prompt, str):
            if prompt not in prompt_names():
                yield at(location, Diagnostic("no_prompt_called", name=prompt), suggest(prompt, prompt_names()))
                continue
            try:
                template: Template = load_prompt(prompt)
            except UserError as error:
                yield at(location, error.message, error.hint)
                continue
        else:
            template = prompt
            yield from _templates(template, at.file, at.lines, location)
        if at.named:
            yield from _unknown_names(template, spec, location, at)
            yield from _missing_sound(template, spec, location, at)


def _templates(template: Template, file: str, lines: Lines, above: Location = ()) -> Iterator[DefinitionFinding]:
    """Find invalid templates and unknown steps in a prompt and its variants."""
    at = _At(file, lines)
    for location, content_part in _parts(template, above):
        for text in content_part.texts:
            yield from at.tried(location, partial(variables, text))
    yield from _steps(template.answer, (*above, "answer"), at)
    for name, variant in getattr(template, "variants", {}).items():
        yield from _templates(variant, file, lines, (*above, "variants", name))


def _parts(template: Template, above: Location = ()) -> Iterator[tuple[Location, Any]]:
    for number, turn in enumerate(template.messages or ()):
        for index, content_part in enumerate(turn.content):
            yield (*above, "messages", number, "content", index), content_part
    for name, content_part in (template.fields or {}).items():
        yield (*above, "fields", name), content_part


def _unknown_names(template: Template, spec: BenchmarkSpec, location: Location, at: _At) -> Iterator[DefinitionFinding]:
    """Yield a finding for each name that a template reads and no field has."""
    names = _names(spec)
    inline = () if isinstance(template, PromptSpec) else location
    for which, variant in _with_variants(template):
        for inner, content_part in _parts(variant, inline):
            try:
                read = part_reads(content_part)
            except UserError:
                continue  # a wrong template is reported elsewhere
            for name in sorted(read - {content_part.when} - names):
                message = Diagnostic("prompt_reads", variant=which, name=name)
                hint = suggest(name, names) or f"there are {', '.join(sorted(names))}"
                yield at(inner if inline else location, message, hint)


def _with_variants(template: Template) -> list[tuple[str, Template]]:
    """A prompt, and its variants by name."""
    return [("", template), *getattr(template, "variants", {}).items()]


def _missing_sound(template: Template, spec: BenchmarkSpec, location: Location, at: _At) -> Iterator[DefinitionFinding]:
    """A prompt that never sends the sound of the questions."""
    if spec.kind not in ("understanding", "qa") or "audio" not in spec.data.columns:
        return
    for which, variant in _with_variants(template):
        parts = [content_part for _, content_part in _parts(variant)]
        if parts and not any(content_part.audio is not None for content_part in parts):
            yield at(location, Diagnostic("prompt_without_sound", variant=which), "- audio: audio")


def _steps(steps: list[str], location: Location, at: _At) -> Iterator[DefinitionFinding]:
    """Find unknown post-processing steps, and steps that cannot follow each other."""
    from codec_bench.benchmark.reading import load_steps

    wrong = False
    for index, step in enumerate(steps):
        alone = list(at.tried((*location, index), partial(load_steps, [step])))
        wrong = wrong or bool(alone)
        yield from alone
    if len(steps) > 1 and not wrong:  # each is a step, but they may not follow each other
        yield from at.tried(location, partial(load_steps, steps))


def _metrics(entry: DefinitionEntry, spec: BenchmarkSpec, at: _At, unread: set[str]) -> Iterator[DefinitionFinding]:
    """Find mistakes in the metrics, their steps, `primary` and the published numbers."""
    yield from _steps(spec.postprocess, ("postprocess",), at)
    for index, use in enumerate(spec.metrics):
        text, location = (use.name if isinstance(use, MetricUse) else use), ("metrics", index)
        name = locate_name(text, os.path.dirname(entry.file))
        yield from at.tried(location, partial(_built, name, spec, _names(spec) if at.named else None))
        if isinstance(use, MetricUse):
            yield from _steps(use.postprocess, (*location, "postprocess"), at)
    try:
        known = Benchmark(entry.name, spec, entry).metrics
    except UserError as error:
        yield at(("metrics",), error.message, error.hint)
        return
    if "metrics" in unread:
        return
    if spec.primary not in known and "primary" not in unread:
        yield at(("primary",), Diagnostic("not_a_metric", name=spec.primary), suggest(spec.primary, known))
    elif "primary" not in unread:
        yield from at.tried(
            ("passing", "at"), partial(_check_passing, spec, locate_name(spec.primary, os.path.dirname(entry.file)))
        )
    for index, table in enumerate(spec.published):
        if table.metric not in known:
            message = Diagnostic("published_not_a_metric", name=table.metric)
            yield at(("published", index, "metric"), message, suggest(table.metric, known))
    has_transcript = any(step.startswith("transcript[") for step in _all_steps(spec))
    if has_transcript and spec.wants != "audio":
        yield at(("wants",), Diagnostic("transcript_of_text"), "wants: audio")


def _check_passing(spec: BenchmarkSpec, primary: str) -> None:
    """Raise UserError if no answer can reach the passing value, by the metric's range."""
    from codec_bench.benchmark.metrics import is_answer_metric, load_answer_metric

    at = spec.passing.at
    if at is None or not is_answer_metric(primary):
        return
    metric = load_answer_metric(primary)
    low, high = metric.range
    best = high if metric.higher_is_better else low
    if best is not None and (at > best if metric.higher_is_better else at < best):
        raise UserError(
            "passing_out_of_reach", at=at, metric=spec.primary, best=best, hint="leave 'at' out, or lower it"
        )


def _all_steps(spec: BenchmarkSpec) -> Iterator[str]:
    yield from spec.postprocess
    for use in spec.metrics:
        if isinstance(use, MetricUse):
            yield from use.postprocess


def _has_reference(spec: BenchmarkSpec) -> bool:
    """Whether questions have an expected answer; a special layout may bring one."""
    constants = spec.data.kinds.names.values() if spec.data.kinds is not None else ()
    named = {*spec.data.columns, *spec.fields, *(name for one in constants for name in one)}
    return "reference" in named or spec.data.expand is not None or spec.data.layout != "table"


def _built(name: str, spec: BenchmarkSpec, names: set[str] | None) -> None:
    """Raise UserError if a metric cannot be built, or needs a column outside `names`."""
    from codec_bench.benchmark.metrics import (
        answer_metric_names,
        expand_answer_metrics,
        is_answer_metric,
        load_answer_metric,
    )
    from codec_bench.metrics import GROUPS, REGISTRY, build_metric, expand

    if is_answer_metric(name):
        for member in expand_answer_metrics([name]):
            metric = load_answer_metric(member)
            missing = [need for need in metric.needs if names is not None and need not in names]
            if missing:
                raise UserError("metric_needs_column", metric=member, name=missing[0])
            if metric.compares and names is not None and not _has_reference(spec):
                hint = "data.columns: {reference: COLUMN} names the column of the expected answer"
                problem = Diagnostic("metric_needs_reference", metric=member)
                raise UserError(problem, hint=suggest("reference", names) or hint)
        return
    if Spec.parse(name).name == _RATING:
        argument = Spec.parse(name).argument or ""
        if is_path(argument):
            return  # `check_rating` reads the files of users' own rubrics
        rubric = read_config(_RUBRICS, argument)
        missing = [need for need in rubric.get("needs") or () if names is not None and need not in names]
        if missing:
            raise UserError("rubric_needs_column", metric=name, name=missing[0])
        return
    for member in expand([name]):
        try:
            build_metric(member)
        except UnknownName as error:  # whoever mistyped it may have meant a metric of answers
            known = [*REGISTRY.names(), *GROUPS, *answer_metric_names()]
            if Spec.parse(member).name in known:
                raise  # its argument is the unknown name
            raise UserError(error.message, hint=suggest(Spec.parse(member).name, known) or error.hint) from None
    if spec.wants != "audio" and spec.kind != "codec":
        raise UserError("metric_of_sound", metric=name, hint="wants: audio")


def _to_finding(file: str, error: UserError) -> DefinitionFinding:
    """Convert an error whose message may begin with `FILE:LINE:` to a finding there.

    Args:
        file: of the finding, if the message does not begin with `FILE:LINE:`.
    """
    match = _LINE.match(error.message)
    if match is None:
        return DefinitionFinding(file, None, as_reason(error.message), error.hint)
    return DefinitionFinding(match["file"], int(match["line"]), as_reason(match["rest"]), error.hint)


def _without_repeats(findings: list[DefinitionFinding]) -> list[DefinitionFinding]:
    """Each finding once, sorted by line; a matrix repeats the mistakes that it shares."""
    unique: Mapping[tuple[Any, ...], DefinitionFinding] = {(f.file, f.line, f.message): f for f in findings}
    return sorted(unique.values(), key=lambda f: (f.file, f.line or 0))
