"""The whole profile of one or several codecs: bitrates, codebooks, cost, latency, robustness, quality and sanity.

Each codec is measured in a process of its own, which is ended when it does not answer; what a codec does wrong is said for that
codec, in one sentence, and the others are finished. One measurement is one file of this room.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codec_bench.api import names
from codec_bench.codecs import codec_names, has_codec
from codec_bench.codecs.base import CodecInfo
from codec_bench.data import open_source, problem_of
from codec_bench.engine.device import resolve_devices
from codec_bench.engine.plan import build_plan
from codec_bench.environment import machine, versions
from codec_bench.errors import UnknownName, UserError
from codec_bench.profiling import curves, isolate, quality
from codec_bench.profiling.sanity import labels
from codec_bench.profiling.settings import NotApplicable, Settings
from codec_bench.profiling.steps import STEPS, Request
from codec_bench.registry import Spec, is_own_code

SCHEMA = 1
METRICS = ("stoi", "pesq_wb", "mel_distance", "dnsmos")

Progress = Callable[[str, str, int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What was found.

    Args:
        folder: holds `profile.json`, `profile.html`, the kept audio and the engine's run.
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
        """What failed, one sentence each, by codec; only codecs of which something did."""
        return {name: codec["faults"] for name, codec in self.codecs.items() if codec["faults"]}

    @property
    def page(self) -> Path:
        """The page."""
        return self.folder / "profile.html"

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(self.facts)


def profile(
    *,
    codec: str | Sequence[str],
    data: Any,
    metrics: str | Sequence[str] = METRICS,
    anchor: str | None = None,
    out: str | os.PathLike[str] | None = None,
    device: str = "auto",
    limit: int | None = None,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
    page: bool = True,
    progress: Progress = lambda codec, step, done, total: None,
) -> Profile:
    """Measures codecs on some data.

    Args:
        codec: names as `evaluate` takes them, or one string with commas. Several points of one codec make a curve.
        data: as for `evaluate`.
        metrics: what the curves are made of; empty for none.
        anchor: the codec or family that delta rates are measured against; None for none.
        out: a folder; None makes one under `runs/`.
        device: `auto`, `cpu` or `cuda:0`; of several GPUs the first is used.
        limit: how many samples to take. seed: of the part that is taken, of noise and of the bootstrap.
        options: arguments of codecs and features, such as {"encodec-24khz@6": {"weights": "random"}}.
        settings: how thoroughly to measure, and how long a codec may take to answer.
        page: whether to write `profile.html`.
        progress: called with (codec, step, steps done, steps in all).

    Returns:
        The profile; `profile.json` holds the same.

    Raises:
        UserError: whatever the caller can mend, which includes that none of the codecs can be loaded.
    """
    settings = settings or Settings(seed=seed)
    chosen = list(dict.fromkeys(names(codec)))
    for name in chosen:
        _known(name)
    if not chosen:
        raise UserError("no codec was named", hint="--codec opus-12k,./my_codec.py:MyCodec")
    options = {name: dict(given) for name, given in (options or {}).items()}
    source = open_source(data, limit=limit, seed=seed if limit is not None else None)
    files = tuple((s.id, s.audio) for s in source if s.audio is not None and problem_of(s) is None)
    folder = Path(out) if out is not None else Path("runs") / f"profile-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    target = resolve_devices(device)[0]
    wanted = names(metrics)
    asked = [*([] if quality.BITRATE in wanted else [quality.BITRATE]), *wanted]
    build_plan(chosen, asked, options, {sample.language for sample in source})  # a typing error should not cost an hour
    audio = folder / "audio"
    try:
        audio.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder '{folder}' cannot be written: {error.strerror}") from error
    log = folder / "codecs.log"
    started = datetime.now(UTC).isoformat(timespec="seconds")
    players = _players(files, settings.players)
    steps = tuple(STEPS)
    if anchor:
        curves.anchor_family(anchor, curves.families(_early_labels(chosen, target, options, settings, log)))
    total = len(chosen) * len(steps) + (1 if wanted else 0)
    found: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(chosen):
        kept = {sample: str(audio / f"{number + 1}-{place + 1}.flac") for place, sample in enumerate(players)}
        for path in kept.values():
            Path(path).unlink(missing_ok=True)  # an earlier profile's in the same folder
        request = Request(name, files, target, settings, steps, options.get(name, {}), kept)
        tell = lambda step, name=name, number=number: progress(  # noqa: E731
            name, step, number * len(steps) + steps.index(step), total
        )
        found[name] = isolate.measure(request, log, tell)
        found[name]["players"] = {s: f"audio/{Path(p).name}" for s, p in kept.items() if Path(p).is_file()}
    if all(sections["load"]["state"] == "failed" for sections in found.values()):
        name, sections = next(iter(found.items()))
        raise UserError(f"'{name}' cannot be loaded: {sections['load']['reason']}")
    _label(found)
    called = _labels(found)
    groups = curves.families(called)
    against = curves.anchor_family(anchor, groups) if anchor else None
    _quality(found, asked if wanted else [], data, folder, log, options, target, limit, seed, settings, progress, total)
    points = curves.curves(groups, {n: s["quality"]["metrics"] for n, s in found.items() if "metrics" in s["quality"]})
    for name, extra in curves.order(points).items():
        found[name]["findings"]["findings"] += extra
    facts = {
        "schema": SCHEMA,
        "started": started,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {"name": source.name, "samples": len(source), "usable": len(files), "fingerprint": source.fingerprint},
        "how": {"device": target, "limit": limit, "seed": seed, "metrics": wanted, "settings": settings.as_dict()},
        "machine": machine(),
        "versions": versions(),
        "codecs": found,
        "labels": called,
        "families": groups,
        "players": [{"id": sample, "audio": _relative(path, folder)} for sample, path in players.items()],
        "curves": points,
        "anchor": against,
        "bd_rate": curves.delta_rates(points, against) if against else {},
    }
    for sections in found.values():
        sections["faults"] = _faults(sections)
    facts = json.loads(json.dumps(_plain(facts), ensure_ascii=False, default=str))
    _write(folder / "profile.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    made = Profile(folder, facts)
    if page:
        from codec_bench.report.profile_page import write_profile_page

        write_profile_page(facts, made.page, references=players)
    return made


def _known(name: str) -> None:
    """Refuses a name that no codec has, or a point that it does not have, before anything is measured."""
    if is_own_code(name):
        path = Path(name.rpartition(":")[0]).expanduser()
        if path.suffix == ".py" and not path.is_file():
            raise UserError(f"there is no file '{path}'")
        return
    from codec_bench.codecs import catalogue

    if not has_codec(name):
        raise UnknownName("codec", name, [*codec_names(), *catalogue.families()])
    if Spec.parse(name).name not in codec_names() or Spec.parse(name).point is not None:
        catalogue.find(name)


def _players(files: Sequence[tuple[str, str]], count: int) -> dict[str, str]:
    """A few clips, spread over the data."""
    count = min(count, len(files))
    return dict(files[round(k * (len(files) - 1) / max(1, count - 1))] for k in range(count))


def _relative(path: str, folder: Path) -> str:
    """A path as it may be shown: inside the folder from there, elsewhere its name alone."""
    resolved = Path(path).resolve()
    return (
        resolved.relative_to(folder.resolve()).as_posix()
        if resolved.is_relative_to(folder.resolve())
        else resolved.name
    )


def _early_labels(
    chosen: Sequence[str], target: str, options: Mapping[str, Any], settings: Settings, log: Path
) -> dict[str, str]:
    """What `_labels` will say, from loading own code alone: what it calls itself is known to nobody before."""
    loaded: dict[str, Mapping[str, Any]] = {}
    for name in chosen:
        loaded[name] = {"info": {"state": "not measured"}}
        if is_own_code(name):
            request = Request(name, (), target, settings, ("load",), options.get(name, {}))
            loaded[name] = isolate.measure(request, log, lambda step: None)
    return _labels(loaded)


def _labels(found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What each codec is called: its name, or for own code what it calls itself where no two do alike."""
    own = {n: s["info"]["name"] for n, s in found.items() if is_own_code(n) and s["info"]["state"] == "ok"}
    taken = [*own.values(), *(n for n in found if n not in own)]
    return {n: own[n] if n in own and taken.count(own[n]) == 1 else n for n in found}


def _label(found: Mapping[str, dict[str, Any]]) -> None:
    """Adds what only the label and several sections together show, and makes one list of all findings."""
    for sections in found.values():
        listed = list(sections["findings"].get("findings", []))
        if sections["info"]["state"] == "ok" and sections["rate"]["state"] == "ok":
            info = CodecInfo(**{k: v for k, v in sections["info"].items() if k in CodecInfo.__dataclass_fields__})
            listed += labels(info, sections["rate"], sections["latency"])
        probe = sections.pop("probe")
        listed += probe.get("findings", [])
        if probe["state"] == "failed":
            listed.append({"check": "odd input", "state": "failed", "found": probe["reason"], "value": None})
        sections["findings"]["findings"] = listed


def _quality(
    found: Mapping[str, dict[str, Any]], wanted: list[str], data: Any, folder: Path, log: Path, options: Mapping[str, Any],
    target: str, limit: int | None, seed: int, settings: Settings, progress: Progress, total: int,
) -> None:  # fmt: skip
    """Adds the section `quality` to every codec: what was found, or why it was not looked for."""
    sound = [name for name, sections in found.items() if sections["rate"]["state"] == "ok"]
    for name, sections in found.items():
        reason = "no metric was asked for" if not wanted else None
        if name not in sound:
            reason = sections["rate"]["reason"]
        sections["quality"] = {"state": "not measured", "reason": reason}
    if not wanted or not sound:
        return
    mine = {name: given for name, given in options.items() if name in sound or name not in found}
    request = {
        "data": data, "metrics": wanted, "seed": seed, "limit": limit, "options": mine,
        "running": {"device": target, "page": False, "save_audio": "none"},
    }  # fmt: skip
    tell = lambda stage, *_: progress("all", f"quality, {stage}", total - 1, total)  # noqa: E731
    done = quality.measure(sound, request, folder, limit_s=settings.time_limit_s, log=log, tell=tell)
    for name, section in done.items():
        found[name]["quality"] = section


def _faults(sections: Mapping[str, Any]) -> list[str]:
    """What failed of one codec, one sentence each, every sentence once."""
    said: dict[str, list[str]] = {}
    for name, section in sections.items():
        if isinstance(section, Mapping) and section.get("state") == "failed" and section.get("reason"):
            said.setdefault(section["reason"], []).append(name)
    for finding in sections["findings"].get("findings", []):
        if finding["state"] == "failed":
            said.setdefault(finding["found"], []).append(finding["check"])
    for row in sections["quality"].get("failures", []):
        if row["metric"] is not None:
            said.setdefault(f"{row['count']} of the clips: {row['reason']}", []).append(row["metric"])
    return [f"{', '.join(dict.fromkeys(where))}: {reason}" for reason, where in said.items()]


def _plain(value: Any) -> Any:
    """JSON values: numbers that are not finite are None, NumPy's are Python's."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _plain(value.item()) if hasattr(value, "item") else value


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise UserError(f"'{path}' cannot be written: {error.strerror}") from error
    finally:
        partial.unlink(missing_ok=True)


__all__ = ["METRICS", "SCHEMA", "NotApplicable", "Profile", "Settings", "profile"]
