"""Profile codecs: bitrate, codebooks, cost, latency, robustness, quality."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codec_bench.api.metric_groups import expand_metrics
from codec_bench.api.recorded_arguments import record_arguments
from codec_bench.apps.profiling.settings import Settings
from codec_bench.apps.profiling.several_codecs import PROFILE, ProfileRun, measure_codecs
from codec_bench.apps.profiling.steps import OPTIONAL
from codec_bench.codecs import require_codec
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.config.option import documented, names
from codec_bench.config.profile_request import ProfileRequest
from codec_bench.data import open_source
from codec_bench.data.alignments import read_alignments
from codec_bench.engine.device import resolve_devices
from codec_bench.engine.plan import build_plan
from codec_bench.engine.running import describe_machine
from codec_bench.engine.systems import Codecs, System, read_systems
from codec_bench.messages import to_json
from codec_bench.messages.errors import UnknownName, UserError, on_disk
from codec_bench.store.files import write_json
from codec_bench.store.folders import mark_finished, named_folder, own_folder

SCHEMA = 1
METRICS = ("stoi", "pesq_wb", "mel_distance", "dnsmos")

Progress = Callable[[str, str, int, int], None]
OnFolder = Callable[[Path, str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The profile of one or several codecs.

    Args:
        folder: holds `profile.json`, `profile.html`, saved audio and the run of the quality metrics.
        facts: everything, as JSON values; see `docs/profile.md` for the schema.
    """

    folder: Path
    facts: Mapping[str, Any]

    @property
    def codecs(self) -> Mapping[str, Mapping[str, Any]]:
        """The sections of each codec by its name."""
        return self.facts["codecs"]

    @property
    def faults(self) -> Mapping[str, Sequence[str]]:
        """Failures by codec, one sentence each; codecs without failures are missing."""
        return {name: codec["faults"] for name, codec in self.codecs.items() if codec["faults"]}

    @property
    def page(self) -> Path:
        """Path of the HTML page."""
        return self.folder / "profile.html"

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return dict(self.facts)


@documented(ProfileRequest)
def profile(
    *,
    codec: Codecs,
    data: Any,
    metrics: str | Sequence[str] = METRICS,
    anchor: str | None = None,
    out: str | os.PathLike[str] | None = None,
    device: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    alignments: str | os.PathLike[str] | None = None,
    skip: str | Sequence[str] | None = None,
    page: bool = True,
    progress: Progress = lambda codec, step, done, total: None,
    on_folder: OnFolder = lambda folder, words: None,
) -> Profile:
    """Measure codecs on some data.

    A call with the same arguments continues a profile that was stopped, also without `out`: codecs that were measured
    completely are not measured again.

    Args:
        settings: clips, repeats, conditions and time limits; a mapping has the fields of `Settings`.
        page: whether to write `profile.html`.
        progress: called with (codec, step, steps done, steps in all).
        on_folder: called with the folder and a sentence on it, such as whether it is new, before anything is measured.

    Raises:
        UserError: an argument is wrong, the folder cannot be written, or none of the codecs can be loaded.

    Examples:
        >>> from codec_bench import profile
        >>> found = profile(codec="g711-ulaw", data="embedded", metrics="snr", limit=2, out="runs/profile", page=False)
        >>> round(found.codecs["g711-ulaw"]["rate"]["measured_bps"]), dict(found.faults)
        (64000, {})
    """
    arguments = dict(locals())
    if not isinstance(settings, Settings):
        settings = Settings(**{"seed": seed, **(settings or {})})
    systems = read_systems(codec)
    for system in systems:
        _known(system)
    options_by_name = dict(options or {})
    if alignments is not None:
        # Fail now, not after an hour of measuring.
        read_alignments(Path(alignments).expanduser())
    source = open_source(data, limit=limit, seed=seed if limit is not None else None)
    request = ProfileRun(
        systems=systems,
        data=data,
        source=source,
        metrics=tuple(expand_metrics(names(metrics), source, None, coded=True, options=options_by_name)[0]),
        anchor=anchor,
        folder=Path(),
        device=resolve_devices(device)[0],
        limit=limit,
        seed=seed,
        options={name: dict(some) for name, some in options_by_name.items() if not any(s.takes(name) for s in systems)},
        settings=settings,
        progress=progress,
        alignments=None if alignments is None else Path(alignments).expanduser().absolute(),
        skip=_excluded_steps(names(skip or ())),
        arguments=record_arguments(ProfileRequest, arguments, extra=[settings]),
    )
    # Refuse a misspelt metric now, not after an hour of measuring.
    gpu = request.device != "cpu"
    plan = build_plan(systems, request.with_bitrate, options_by_name, {sample.language for sample in source}, gpu=gpu)
    request = replace(request, systems=plan.systems)  # with the options of each
    with own_folder("profile", request.request) if out is None else named_folder(out) as out_folder:
        on_folder(out_folder.path, out_folder.words)
        return _profile_in(replace(request, folder=out_folder.path), page)


def _profile_in(request: ProfileRun, page: bool) -> Profile:
    """Measure into a folder that is already locked, and write `profile.json` and page."""
    with on_disk("file_not_writable", path=request.folder):
        request.audio.mkdir(parents=True, exist_ok=True)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    repeatable = {"config": request.config, "arguments": request.arguments, "how": request.recorded_options}
    write_json(request.folder / "run.json", _plain(repeatable))
    measured = measure_codecs(request)
    facts = {
        "schema": SCHEMA,
        "started": started,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": measured.pop("data"),
        "how": measured.pop("how"),
        **describe_machine(),
        **measured,
    }
    facts = json.loads(json.dumps(_plain(to_json(facts)), ensure_ascii=False, default=str))
    profile = Profile(request.folder, facts)
    if page:
        from codec_bench.apps.profiling.page import write_profile_page

        write_profile_page(facts, profile.page, references=request.players)
    write_json(request.folder / PROFILE, facts)  # last: the measured values belong to the profile before it
    request.measured.unlink(missing_ok=True)
    mark_finished(request.folder)
    return profile


def _excluded_steps(steps: Sequence[str]) -> tuple[str, ...]:
    """Return the steps to skip, each once; raises UnknownName."""
    for step in steps:
        if step not in OPTIONAL:
            raise UnknownName("optional_measurement", step, OPTIONAL)
    return tuple(dict.fromkeys(steps))


def _known(system: System) -> None:
    """Raise UserError if a codec is unknown or given as a class or object, not a file."""
    name = system.codec
    if name is None and system.live is not None:
        raise UserError(
            "codec_of_this_process",
            codec=system.spec,
            type="class" if isinstance(system.live, type) else "object",
            hint=f"put the class into a file and name it: ./my_codec.py:{system.cls.__name__}",
        )
    require_codec(name, system.spec)


def _plain(value: Any) -> Any:
    """Convert to JSON types: non-finite numbers to None, NumPy numbers to Python's."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _plain(value.item()) if hasattr(value, "item") else value


__all__ = ["METRICS", "SCHEMA", "NotApplicable", "Profile", "Settings", "profile"]
