"""Check the inputs of a long run (`codec-bench validate`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from codec_bench.api.benchmark_names import is_benchmark_path, is_model_config
from codec_bench.api.doctor import embedded_clip
from codec_bench.api.finding import Finding, State
from codec_bench.config import check_settings
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.limits import Limits
from codec_bench.config.option import names as listed
from codec_bench.config.registry import declared_methods
from codec_bench.messages import Diagnostic, as_reason, as_remark
from codec_bench.messages.errors import Note, UnknownName, UserError
from codec_bench.types import Audio


def validate(
    names: str | Sequence[str] = (),
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Limits | None = None,
    hub: bool = False,
    pins: str | os.PathLike[str] | None = None,
) -> tuple[Finding, ...]:
    """Check data, codecs, metrics, benchmarks, prompts and models before a long run.

    Args:
        names: manifests, folders, run folders, codecs, metrics, benchmarks, prompts or models (`./mine.py:MyCodec`), or
            one string with commas. Without a name, with `hub`, all benchmarks whose data are on the hub.
        options: further arguments of codecs, models and metrics by name.
        settings: time limit of one call of a codec, and memory limit of its process.
        hub: compare benchmarks with the Hugging Face hub: repository, configuration, split, columns, number of
            questions, licence and revision, and decode the sound of one row. It needs a network.
        pins: with `hub`, write the hub's state by benchmark to this file; a definition may name it in `data.pins`.

    Returns:
        One `Finding` for each check. Errors are findings and are not raised.

    Examples:
        >>> from codec_bench import validate
        >>> {finding.state for finding in validate("snr")}
        {'ok'}
    """
    check_settings(options or {}, listed(names) if isinstance(names, str) else names, "name_of_check")
    if hub:
        return _check_hub(listed(names) if isinstance(names, str) else names, pins)
    return tuple(
        finding
        for name in (listed(names) if isinstance(names, str) else names)
        for finding in _check_name(name, settings, options or {})
    )


def _check_hub(names: Sequence[str], pins: str | os.PathLike[str] | None) -> tuple[Finding, ...]:
    """Check benchmarks against the hub, and write the hub's state to `pins` if named.

    Args:
        names: the benchmarks; empty for all with data on the hub.
    """
    from codec_bench.api.hub_check import check_hub_data, list_hub_benchmarks, write_pins
    from codec_bench.benchmark.definition.on_hub import HubState

    findings, seen = list[Finding](), dict[str, HubState]()
    for name in names or list_hub_benchmarks():
        of_name, there = check_hub_data(name)
        findings += of_name
        seen |= there
    if pins is not None:
        write_pins(pins, seen)
    return tuple(findings)


def _check_name(
    name: str, limits: Limits | None = None, options: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> list[Finding]:
    """Check a codec or another part by name; an error becomes a finding."""
    try:
        # A codec is known without the definitions of all benchmarks.
        return (_check_codec if _is_codec(name) else _check_any)(name, limits, options)
    except UserError as error:
        return [Finding(name, "wrong", as_reason(error.message), error.hint or "")]


def _is_codec(name: str) -> bool:
    """Return whether a name is a registered codec or code with a codec's methods."""
    from codec_bench.codecs import has_codec

    try:
        if is_custom_code(name):
            return bool({"encode", "decode"} & declared_methods(name))  # nothing of it runs in this process
        return not os.path.exists(name) and has_codec(name)
    except UserError:  # it is no name, but may be a path
        return False


def _takes_settings(name: str) -> bool:
    """Whether a name is a codec, model or metric, which have settings."""
    from codec_bench import metrics
    from codec_bench.benchmark import benchmark_names, canonical
    from codec_bench.benchmark.definition.prompt import prompt_names
    from codec_bench.codecs import is_command_file
    from codec_bench.config.registry import Spec
    from codec_bench.models import model_names

    if canonical(name) in benchmark_names() or is_benchmark_path(name) or name in prompt_names():
        return False
    if name in model_names() or is_model_config(name) or is_custom_code(name) or is_command_file(name):
        return True
    base = Spec.parse(name).name
    return base in metrics.REGISTRY.names() or base in metrics.GROUPS


def _check_any(name: str, limits: Limits | None, options: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Check whatever the name is: a run, benchmark, model, codec, metric or data."""
    from codec_bench import codecs, metrics
    from codec_bench.benchmark import benchmark_names, canonical
    from codec_bench.benchmark.definition.loader import is_path
    from codec_bench.benchmark.definition.prompt import prompt_names
    from codec_bench.codecs import is_command_file
    from codec_bench.config.registry import Spec, load_attribute
    from codec_bench.data import REGISTERED
    from codec_bench.models import model_names
    from codec_bench.store.record import DATABASE

    settings = options.get(name) or {}
    if settings and not _takes_settings(name):
        raise UserError("takes_no_settings", name=name, hint="--set is for codecs, models and metrics")
    if os.path.isfile(os.path.join(name, DATABASE)):
        from codec_bench.report.open_run import open_run

        run = open_run(name)
        counts = run.counts()
        state: State = "ok" if counts["finished"] == counts["items"] else "note"
        return [Finding(name, state, Diagnostic("items_finished", finished=counts["finished"], items=counts["items"]))]
    if canonical(name) in benchmark_names():
        return _check_benchmark(name)
    if is_benchmark_path(name):
        return _check_benchmark(name if is_path(name) else os.path.join(os.curdir, name))
    if name in model_names() or is_model_config(name):
        return _check_model(name, settings)
    if is_custom_code(name):
        loaded = load_attribute(name)
        if hasattr(loaded, "ask"):
            return _check_model(name, settings)
        return _check_metric(name, settings) if hasattr(loaded, "compute") else _check_codec(name, limits, options)
    if is_command_file(name):
        return _check_codec(name, limits, options)
    if name in prompt_names() and not os.path.exists(name):
        return _check_prompt(name)
    if name not in REGISTERED and not os.path.exists(name):
        base = Spec.parse(name).name
        if base in metrics.REGISTRY.names() or base in metrics.GROUPS:
            return [f for member in metrics.expand([name]) for f in _check_metric(member, settings)]
        if not codecs.has_codec(base):
            if os.sep in name or os.path.splitext(name)[1][1:].isalpha():
                raise UserError("no_file_or_folder", path=name)
            known = [
                *codecs.codec_names(), *metrics.REGISTRY.names(), *metrics.GROUPS, *benchmark_names(), *prompt_names(),
                *model_names(), *REGISTERED,
            ]  # fmt: skip
            raise UnknownName("checked_name", name, known)
        return _check_codec(name, limits, options)
    return _check_data(name)


def _check_benchmark(name: str) -> list[Finding]:
    """Find the mistakes of a benchmark's definition and local rows."""
    from codec_bench.benchmark.definition.validate import validate_benchmark
    from codec_bench.benchmark.judge.metric import check_rating

    wrong = [Finding(name, "wrong", f.located, f.hint or "") for f in validate_benchmark(name, check_rating)]
    return wrong or [Finding(name, "ok", Diagnostic("definition_fits"))]


def _check_prompt(name: str) -> list[Finding]:
    from codec_bench.benchmark.definition.validate import validate_prompt

    wrong = [Finding(name, "wrong", f.located, f.hint or "") for f in validate_prompt(name)]
    return wrong or [Finding(f"prompt {name}", "ok", Diagnostic("prompt_fits"))]


def _check_model(name: str, options: Mapping[str, Any]) -> list[Finding]:
    """Load a model without starting it; report its inputs and when its service ends."""
    from codec_bench.models import describe_service_end, load_model

    info = load_model(name, options).info
    facts = Diagnostic("model_facts", inputs=" and ".join(info.inputs), outputs=" and ".join(info.outputs))
    ends = describe_service_end(name)
    notes = [Finding(f"model {name}", "note", Diagnostic("service_ends", when=ends), "see list models")] if ends else []
    return [Finding(f"model {name}", "ok", facts), *notes]


def _check_data(name: str) -> list[Finding]:
    """Read all files of data; report layout, unusable samples, totals and first rows."""
    from codec_bench.data import open_source
    from codec_bench.data.layouts.words import IGNORED, ignored_lines, layout_line
    from codec_bench.types import Audio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)  # ignored files are in the table
        source = open_source(name)
    report = source.report
    layout = "manifest or table" if report is None else layout_line(report)
    out = [Finding(name, "ok", Diagnostic("data_layout", layout=layout))]
    out += [Finding(f"{name}: {id}", "wrong", as_reason(reason)) for id, reason in source.problems.items()]
    seconds, readable = 0.0, 0
    for sample in source:
        if sample.id in source.problems or sample.audio is None:
            continue
        try:
            seconds += Audio.read(sample.audio).duration_s
            readable += 1
        except UserError as error:
            out.append(Finding(f"{name}: {sample.id}", "wrong", as_reason(error.message)))
    is_complete = readable == len(source)
    facts = Diagnostic(
        "data_readable" if is_complete else "samples_unreadable",
        readable=readable,
        samples=len(source),
        minutes=seconds / 60,
        texts=sum(s.text is not None for s in source),
        speakers=len({s.speaker for s in source if s.speaker}),
        languages=sorted({s.language for s in source if s.language}),
    )
    out.append(Finding(name, "ok" if is_complete else "wrong", facts))
    ignored = {} if report is None else ignored_lines(report)
    out += [Finding(f"{name}: {kind}", "note", line, IGNORED[kind]) for kind, line in ignored.items()]
    for number, sample in enumerate(source.samples[:_FIRST], 1):
        shown = {"speaker": sample.speaker, "language": sample.language, "text": sample.text}
        row = "; ".join(f"{key}: {value}" for key, value in shown.items() if value is not None)
        out.append(Finding(f"{name}: row {number}", "note", as_remark("; ".join(filter(None, (sample.id, row))))))
    return out


_FIRST = 3
"""Number of rows of data in the output."""


def _check_metric(name: str, options: Mapping[str, Any]) -> list[Finding]:
    """Score the embedded clip at half amplitude with a metric."""
    from codec_bench.api.load_metric import load_metric

    check_settings(options, ["weights"], "metric_option", within=name)
    metric = load_metric(name, device="cpu", weights=options.get("weights"))
    clip = embedded_clip()
    quiet = Audio(clip.samples * 0.5, clip.sample_rate_hz)
    scores = metric(reference=[clip], estimate=[quiet], text=["a sentence"], language="en")[0]
    result = lambda s: (  # noqa: E731
        Diagnostic("score_value", value=s.value)
        if s.status == "ok"
        else Diagnostic("score_without_value", status=s.status, cause=s.reason)
    )
    return [Finding(f"metric {n}", "wrong" if s.status == "failed" else "ok", result(s)) for n, s in scores.items()]


def _check_codec(name: str, limits: Limits | None, options: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Run the codec checks and convert their states to those of findings."""
    from codec_bench.api.check_codec import check_codec
    from codec_bench.codecs.checks import TO_DO

    states: dict[str, State] = {"ok": "ok", "not applicable": "note", "suspect": "suspect", "failed": "wrong"}
    findings = [(f, states[f["state"]]) for f in check_codec(codec=name, options=options.get(name), settings=limits)]
    return [
        Finding(f"codec {name}: {f['check']}", s, f["found"], TO_DO[f["check"]] if s in ("suspect", "wrong") else "")
        for f, s in findings
    ]
