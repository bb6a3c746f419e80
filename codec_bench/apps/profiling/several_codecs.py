"""Measures each codec in a worker process, then compares them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from codec_bench.apps.profiling import curves, latency
from codec_bench.apps.profiling.settings import SKIPPED, Settings
from codec_bench.apps.profiling.steps import STEPS, ProfileJob
from codec_bench.codecs import code_of_codec
from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.checks import faulty_findings
from codec_bench.codecs.checks.steps import gather_findings, uniform_sections
from codec_bench.config.file_content import with_content
from codec_bench.data import Source, data_name, problem_of
from codec_bench.data.alignments import fingerprint
from codec_bench.engine.codec_worker import measure
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.pool import NotLoaded
from codec_bench.engine.running import Running
from codec_bench.engine.systems import System
from codec_bench.messages import Diagnostic, from_json, of_error
from codec_bench.messages.errors import RunMismatch, UserError
from codec_bench.report.open_run import open_run
from codec_bench.report.results import write_results
from codec_bench.stats.summary import summarise
from codec_bench.store.files import write_json
from codec_bench.store.folders import request_hash
from codec_bench.store.statuses import FAILURES

PROFILE, MEASURED = "profile.json", "measured.json"
_NOT_WHOLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of reading a file that is missing or incomplete."""


@dataclass(frozen=True)
class ProfileRun:
    """The checked arguments of `profile`.

    Args:
        metrics: of the curves; empty for none.
        anchor: the codec or family of the delta rates.
        options: of the features, by name; those of the codecs are in `systems`.
        alignments: the file or folder with phone alignments.
        skip: the steps to skip.
    """

    systems: tuple[System, ...]
    data: Any
    source: Source
    metrics: tuple[str, ...]
    anchor: str | None
    folder: Path
    device: str
    limit: int | None
    seed: int
    options: Mapping[str, Mapping[str, Any]]
    settings: Settings
    progress: Callable[[str, str, int, int], None]
    alignments: Path | None = None
    skip: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def codecs(self) -> dict[str, str]:
        """The codec specification of each system, by the system's name in this profile."""
        return {system.name: str(system.codec) for system in self.systems}

    def options_of(self, name: str) -> Mapping[str, Any]:
        """Return the keyword arguments of a codec's class."""
        return next(system.stage.options for system in self.systems if system.name == name and system.stage is not None)

    @property
    def with_bitrate(self) -> list[str]:
        """The metrics of the quality run: those requested, and the bitrate."""
        return [*([] if BITRATE in self.metrics else [BITRATE]), *self.metrics]

    @cached_property
    def files(self) -> tuple[tuple[str, str], ...]:
        """(id, path) of every usable clip."""
        return tuple((s.id, s.audio) for s in self.source if s.audio is not None and problem_of(s) is None)

    @cached_property
    def players(self) -> dict[str, str]:
        """(id: path) of the clips that the page plays, spread over the data."""
        count = min(self.settings.players, len(self.files))
        return dict(self.files[round(k * (len(self.files) - 1) / max(1, count - 1))] for k in range(count))

    @property
    def audio(self) -> Path:
        """The folder of the decoded clips that the page plays."""
        return self.folder / "audio"

    @property
    def log(self) -> Path:
        """The file of the codecs' output."""
        return self.folder / "codecs.log"

    @property
    def measured(self) -> Path:
        """The file of finished codecs, until the profile is complete."""
        return self.folder / MEASURED

    @cached_property
    def request(self) -> dict[str, Any]:
        """Values that must be equal for a stopped profile to continue, as JSON values."""
        return {
            "codecs": self.codecs,
            "code": {name: code for name in self.codecs.values() if (code := code_of_codec(name))},
            "options of codecs": {
                name: {k: with_content(k, v) if code_of_codec(codec) else v for k, v in self.options_of(name).items()}
                for name, codec in self.codecs.items()
            },
            "data": self.source.content_hash,
            "metrics": list(self.metrics),
            "anchor": self.anchor,
            "device": self.device,
            "limit": self.limit,
            "seed": self.seed,
            "options": self.options,
            "settings": self.settings.as_dict(),
            **({"alignments": fingerprint(self.alignments)} if self.alignments is not None else {}),
            **({"skip": sorted(self.skip)} if self.skip else {}),
        }

    @property
    def recorded_options(self) -> dict[str, Any]:
        """The recorded options, as JSON values."""
        return {
            "device": self.device,
            "limit": self.limit,
            "seed": self.seed,
            "metrics": list(self.metrics),
            "settings": self.settings.as_dict(),
            **({"alignments": self.alignments.name} if self.alignments is not None else {}),
            **({"skip": list(self.skip)} if self.skip else {}),
        }

    @property
    def config(self) -> dict[str, Any]:
        """The configuration in `run.json`."""
        options = {**self.options, **{name: self.options_of(name) for name in self.codecs if self.options_of(name)}}
        return {
            "command": "profile", "systems": [s.spec if not s.titled else f"{s.name}={s.spec}" for s in self.systems],
            "data": data_name(self.data), "metrics": list(self.metrics), "anchor": self.anchor, "seed": self.seed,
            "limit": self.limit, "options": options,
            **({"alignments": str(self.alignments)} if self.alignments is not None else {}),
            **({"skip": list(self.skip)} if self.skip else {}),
        }  # fmt: skip

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of each codec, in order."""
        return tuple(step for step in STEPS if step not in self.skip)

    @property
    def total(self) -> int:
        """The number of steps in all, for the progress."""
        return len(self.codecs) * len(self.steps) + (1 if self.metrics else 0)


def measure_codecs(request: ProfileRun) -> dict[str, Any]:
    """Measure all codecs, and return the content of `profile.json`."""
    if request.anchor:
        curves.anchor_family(request.anchor, curves.families(_early_names(request)))
    results = _measured_before(request)
    for number, name in enumerate(request.codecs):
        if name not in results:
            results[name] = _measure(request, number, name)
            write_json(request.measured, {**_marks(request), "codecs": results})
    results = {name: results[name] for name in request.codecs}
    if all(sections["load"]["state"] == "failed" for sections in results.values()):
        name, sections = next(iter(results.items()))
        raise UserError("codec_cannot_be_loaded", codec=name, reason=sections["load"]["reason"])
    for sections in results.values():
        _gather_findings(sections)
    names = _names(request, results)
    groups = curves.families(names)
    against = curves.anchor_family(request.anchor, groups) if request.anchor else None
    _add_quality(request, results)
    measured = {n: s["quality"]["metrics"] for n, s in results.items() if "metrics" in s["quality"]}
    points = curves.curves(groups, measured)
    for name, extra in curves.find_quality_drops(points).items():
        results[name]["findings"]["findings"] += extra
    for sections in results.values():
        sections["faults"] = _faults(sections)
    source = request.source
    data = {"name": source.name, "samples": len(source), "usable": len(request.files)}
    return {
        "data": {**data, "fingerprint": source.fingerprint},
        "how": request.recorded_options,
        "codecs": results,
        "labels": names,
        "families": groups,
        "players": [{"id": id, "audio": _relative(path, request.folder)} for id, path in request.players.items()],
        "curves": points,
        "anchor": against,
        "bd_rate": curves.delta_rates(points, against) if against else {},
    }


def codecs_measured(folder: Path) -> list[str]:
    """List the codecs that an unfinished profile in a folder has measured."""
    try:
        return list(json.loads((folder / MEASURED).read_text("utf-8"))["codecs"])
    except _NOT_WHOLE:
        return []


def _marks(request: ProfileRun) -> dict[str, str]:
    """Return hashes of the request, and of the finished `profile.json` to be replaced."""
    before = request.folder / PROFILE
    content = before.read_bytes() if before.exists() else b""
    return {"request": request_hash(request.request), "replaces": hashlib.blake2b(content, digest_size=16).hexdigest()}


def _measured_before(request: ProfileRun) -> dict[str, dict[str, Any]]:
    """Load the sections of codecs measured before the same profile was stopped."""
    try:
        saved = json.loads(request.measured.read_text("utf-8"))
        if any(saved[name] != mark for name, mark in _marks(request).items()):
            return {}
        before = from_json(saved["codecs"])
        return {name: sections for name, sections in before.items() if sections["load"]["state"] == "ok"}
    except _NOT_WHOLE:
        return {}


def _measure(run: ProfileRun, number: int, name: str) -> dict[str, Any]:
    """Measure one codec, and return its results by section; `number` is its position."""
    players = {sample: str(run.audio / f"{number + 1}-{index + 1}.flac") for index, sample in enumerate(run.players)}
    for path in players.values():
        Path(path).unlink(missing_ok=True)  # left by an earlier profile in the same folder
    steps = run.steps
    codec, options = run.codecs[name], run.options_of(name)
    request = ProfileJob(
        codec, run.files, run.device, run.settings, steps, options, players=players, metrics=run.metrics,
        alignments=None if run.alignments is None else str(run.alignments),
        speakers={sample.id: sample.speaker for sample in run.source if sample.speaker is not None},
        emotions={sample.id: str(mood) for sample in run.source if (mood := sample.extra.get("emotion"))},
        texts={sample.id: sample.text for sample in run.source if sample.text is not None},
    )  # fmt: skip

    def report(step: str) -> None:
        run.progress(name, step, number * len(steps) + steps.index(step), run.total)

    sections: dict[str, Any] = measure(request, run.log, report)
    for step in run.skip:
        sections.update(uniform_sections(request, step, "not measured", SKIPPED))
    sections["players"] = {s: f"audio/{Path(p).name}" for s, p in players.items() if Path(p).is_file()}
    return sections


def _relative(path: str, folder: Path) -> str:
    """Shorten a path: relative to the folder if inside, else its name."""
    resolved, root = Path(path).resolve(), folder.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else resolved.name


def _early_names(run: ProfileRun) -> dict[str, str]:
    """Return display names before measuring; custom code is loaded to read its name."""
    loaded: dict[str, Mapping[str, Any]] = {}
    for system in run.systems:
        loaded[system.name] = {"info": {"state": "not measured"}}
        if system.names_itself:
            codec, options = run.codecs[system.name], run.options_of(system.name)
            request = ProfileJob(codec, (), run.device, run.settings, ("load",), options)
            loaded[system.name] = measure(request, run.log)
    return _names(run, loaded)


def _names(request: ProfileRun, results: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return display names: the codec's own if it is unique, otherwise as typed."""
    itself = [s.name for s in request.systems if s.names_itself]
    own_names = {n: results[n]["info"]["name"] for n in itself if results[n]["info"]["state"] == "ok"}
    used = [*own_names.values(), *(n for n in results if n not in own_names)]
    return {n: own_names[n] if n in own_names and used.count(own_names[n]) == 1 else n for n in results}


def _gather_findings(sections: dict[str, Any]) -> None:
    """Merge findings; measured look-ahead replaces the coarser check."""
    gather_findings(sections)
    if sections["info"]["state"] == "ok" and "lookahead_samples" in sections.get("latency", {}):
        info = CodecInfo(**{k: v for k, v in sections["info"].items() if k in CodecInfo.__dataclass_fields__})
        label_check = latency.label(info, sections["latency"])
        others = [f for f in sections["findings"]["findings"] if f["check"] != label_check["check"]]
        sections["findings"]["findings"] = [*others, label_check]


def _add_quality(run: ProfileRun, results: Mapping[str, dict[str, Any]]) -> None:
    """Measure quality, and set `quality` in each codec's results: metrics or a reason."""
    sound = [name for name, sections in results.items() if sections["rate"]["state"] == "ok"]
    for name, sections in results.items():
        reason = Diagnostic("no_metric") if not run.metrics else None
        if name not in sound:
            reason = sections["rate"]["reason"]
        sections["quality"] = {"state": "not measured", "reason": reason}
    if not run.metrics or not sound:
        return
    options = {**run.options, **{name: codec_options for name in sound if (codec_options := run.options_of(name))}}
    run_request = {"command": "evaluate", "data": data_name(run.data), "seed": run.seed, "limit": run.limit}
    codecs = {name: run.codecs[name] for name in sound}

    def report(stage: str, *_: Any) -> None:
        run.progress("all", f"quality, {stage}", run.total - 1, run.total)

    running = Running(
        device=run.device, time_limit_s=run.settings.time_limit_s, impatient=True, page=False, save_audio="none",
        check=False, progress=report,
    )  # fmt: skip
    evaluation = Evaluation(codecs, run.with_bitrate, run.source, run_request, options)
    suspects = [name for name in sound if faulty_findings(results[name]["findings"].get("findings", []))]
    for name, section in measure_quality(evaluation, run.folder, running, suspects).items():
        results[name]["quality"] = section


def _faults(sections: Mapping[str, Any]) -> list[Diagnostic]:
    """List the failures of one codec, each once with the sections where it occurs."""
    faults: dict[Diagnostic, list[str]] = {}
    for name, section in sections.items():
        if isinstance(section, Mapping) and section.get("state") == "failed" and section.get("reason"):
            faults.setdefault(section["reason"], []).append(name)
    for one in sections["findings"].get("findings", []):
        if one["state"] == "failed":
            faults.setdefault(one["found"], []).append(one["check"])
    for row in sections["quality"].get("failures", []):
        if row["metric"] is not None:
            reason = from_json({"reason": row["reason"], "reason_code": row["reason_code"]})["reason"]
            fault = Diagnostic("scores_failed", count=row["count"], reason=reason)
            faults.setdefault(fault, []).append(row["metric"])
    return [Diagnostic("fault_of", sections=list(dict.fromkeys(where)), reason=one) for one, where in faults.items()]


BITRATE = "bitrate"
_FOLDERS = 99


def measure_quality(
    evaluation: Evaluation, folder: Path, running: Running, suspects: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """Measure the metrics of all codecs in one run, and summarise each codec.

    All codecs share one run, so features of references are computed once. A codec whose workers hang or die while
    loading fails, and the others run without it.

    Args:
        evaluation: the codecs, the metrics and the data.
        folder: parent of the run folder: `quality`, or `quality-2` and so on if that contains another run.
        suspects: codecs with findings; they are compared with no other.

    Returns:
        By codec: `state` (`ok` or `failed`), `reason`, `metrics`, `failures` and `run`, the name of the run folder.

    Raises:
        UserError: an error of all codecs, such as a folder that cannot be written.
    """
    left: dict[str, str] = dict(evaluation.systems)
    failed: dict[str, dict[str, Any]] = {}
    while left:
        try:
            return {**failed, **_entries(left, _run_of(replace(evaluation, systems=left), folder, running), suspects)}
        except NotLoaded as fault:
            failed[fault.key] = {"state": "failed", "reason": of_error(fault, with_type=False)}
            del left[fault.key]
    return failed


def _run_of(evaluation: Evaluation, folder: Path, running: Running) -> Path:
    """Run the evaluation in the first `quality-N` folder without another run."""
    for number in range(1, _FOLDERS):
        out = folder / ("quality" if number == 1 else f"quality-{number}")
        try:
            write_results(execute(evaluation, out, running), page=running.page)
        except RunMismatch:
            continue
        return out
    raise UserError("too_many_runs", folder=folder, count=_FOLDERS, hint="name another folder with --out")


def _entries(codecs: Iterable[str], folder: Path, suspects: Collection[str]) -> dict[str, dict[str, Any]]:
    """Summarise the run in `folder`, by codec: state, reason, metrics and failures.

    Args:
        suspects: codecs with findings; they are compared with no other.
    """
    summary = summarise(open_run(folder), suspects=suspects)
    entries = {}
    for codec in codecs:
        reasons = [r for r in summary.failures.reasons if r.system == codec]
        failed = sum(r.count for r in reasons if r.metric is None)
        broken = [r for r in reasons if r.metric is None or r.status in FAILURES]
        reason = Diagnostic("clips_failed", clips=failed, reason=reasons[0].reason) if failed else None
        entries[codec] = {
            "state": "failed" if failed else "ok", "reason": reason,
            "metrics": summary.systems[codec].as_dict()["metrics"],
            "failures": [r.as_dict() for r in broken], "run": folder.name,
        }  # fmt: skip
    return entries
