"""Merge the records of all shards into that of a run on one machine.

Rows have the numbers of the whole data set, so only their checksums change (they hold the run's number). SQLite sorts
the rows with files for what exceeds memory. The new record replaces the old one once it is whole; a killed merge
changes nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.messages.errors import RunMismatch, UserError, on_disk
from codec_bench.store import integrity
from codec_bench.store.answers import AnswerWriter, has_answers
from codec_bench.store.folders import FolderLock
from codec_bench.store.integrity import DATABASE, GENERATION
from codec_bench.store.parts import MERGED, ShardRun, ShardRuns, mark_part, read_parts
from codec_bench.store.record import Run
from codec_bench.store.tables import IDENTITY
from codec_bench.store.writer import RunWriter, differences

_UNDER_WAY = "merging"
"""Folder in which a merged record is made."""
_ONCE = ("meta", "systems", "metrics")
"""Tables that are equal in all parts, or are made anew."""
_NOT_COPIED = {
    *("schema", IDENTITY, GENERATION, "fingerprint", "timings", "state", "started", "finished", "checks", "how"),
    *("answering", "canary", MERGED),
}
_SUMMED = ("asked", "failed", "cached")
"""Counts in the timings of answering."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Result of a merge, with numbers of shards.

    Args:
        added: not merged before.
        unfinished: their runs are not finished.
    """

    folder: Path
    parts: tuple[int, ...]
    of: int
    added: tuple[int, ...]
    missing: tuple[int, ...]
    unfinished: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """Whether every shard is there and finished."""
        return not (self.missing or self.unfinished)


def merge_records(
    folders: Sequence[Path],
    out: Path,
    *,
    partial: bool = False,
    anew: bool = False,
    lock: FolderLock | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Merged:
    """Merge the records of shards into one, or add further shards to a merged one.

    A shard without a part is not missing if the parts hold all samples: a shard of a small data set may be empty.

    Args:
        partial: whether shards may be missing or unfinished; the merged run is then marked as partial.
        anew: whether to merge everything again if merged parts have changed.
        lock: of the folder, if this process holds it.
        notify: called with each step.

    Raises:
        UserError: a part is missing, repeated, unfinished, damaged or of another run, or the record cannot be written.
    """
    notify(f"checking {len(folders)} part{'' if len(folders) == 1 else 's'}")
    shards = read_parts(folders)
    new_lock = FolderLock(out) if lock is None else None
    try:
        held = _read_merged(out, shards, anew)
        parts = {shard.number: shard for shard in shards.parts if shard.number not in held}
        every = sorted({*held, *parts})
        missing = tuple(number for number in range(1, shards.of + 1) if number not in every)
        if missing and shards.parts[0].fingerprint.get("samples") == _samples(out, held, parts):
            missing = ()
        unfinished = tuple(sorted(shard.number for shard in shards.unfinished if shard.number in parts))
        if not partial:
            _check_complete(missing, shards, parts)
        if parts:
            _write(out, shards, held, parts, missing, unfinished, notify)
    finally:
        if new_lock is not None:
            new_lock.release()
    return Merged(out, tuple(every), shards.of, tuple(sorted(parts)), missing, unfinished)


def join_pieces(folders: Sequence[Path], out: Path, shard: str) -> None:
    """Merge the runs of a shard's smaller shards into the finished run of that shard."""
    merged = merge_records(folders, out, partial=True)
    if merged.unfinished:
        raise UserError("pieces_unfinished", shard=shard, out=out, unfinished=list(merged.unfinished))
    with closing(Run(out)) as run:
        fingerprint, config, arguments = (run.meta.get(name) or {} for name in ("fingerprint", "config", "arguments"))
    with closing(RunWriter(out, {**fingerprint, "shard": shard}, replacing=("shard",))) as writer:
        of_shard = {"config": {**config, "shard": shard}, "arguments": {**arguments, "shard": shard}}
        writer.set_meta(**of_shard, state="finished", merged=None)
    with closing(Run(out)) as run:
        mark_part(run)


def _samples(out: Path, held: Mapping[int, Any], parts: Mapping[int, ShardRun]) -> int:
    total = 0
    for folder in [*([out] if held else []), *(shard.folder for shard in parts.values())]:
        with closing(Run(folder)) as run:
            total += run.counts()["samples"]
    return total


def _check_complete(missing: Sequence[int], shards: ShardRuns, parts: Mapping[int, ShardRun]) -> None:
    """Raise UserError if shards are missing, or if one of `parts` is not finished."""
    hints = []
    if missing:
        shown = ", ".join(f"{number}/{shards.of}" for number in missing[:10])
        hints.append(
            f"{len(missing)} of {shards.of} shards are missing: {shown}{' and more' if len(missing) > 10 else ''}"
        )
    hints += [
        f"the run of shard {shard.shard} in '{shard.folder}' is not finished"
        for shard in shards.unfinished
        if shard.number in parts
    ][:10]
    if hints:
        raise UserError(
            "shards_incomplete",
            causes="; ".join(hints),
            hint="run these shards, or give --partial to merge what is there",
        )


def _read_merged(out: Path, shards: ShardRuns, anew: bool) -> dict[int, dict[str, Any]]:
    """Facts by number of the shards already merged in `out`; {} if all must be merged.

    Raises:
        UserError: a finished shard has changed since, or `out` holds a run that is no merged one.
        RunMismatch: the merged run in `out` is another one.
    """
    if not (out / DATABASE).is_file():
        return {}
    with closing(Run(out)) as run:
        run.check()
        meta = run.meta
    merged = meta.get(MERGED)
    if not isinstance(merged, dict):
        raise UserError("not_merged", out=out, hint="give another --out")
    before, now = {**meta["fingerprint"], "shards": merged["of"]}, {**shards.parts[0].fingerprint, "shards": shards.of}
    if before != now:
        raise RunMismatch(
            "shards_of_another_run", out=out, differences="; ".join(differences(before, now)), hint="give another --out"
        )
    held = {int(number): facts for number, facts in merged["parts"].items()}
    changed = [
        shard for shard in shards.parts if shard.number in held and held[shard.number]["content"] != shard.content
    ]
    again = [shard for shard in changed if held[shard.number]["complete"] and not anew]
    if again:
        raise UserError(
            "shard_changed",
            shard=again[0].shard,
            folder=again[0].folder,
            out=out,
            hint="merge all parts into a new folder",
        )
    if changed:  # such as shards that were merged before they were finished: everything is merged again
        known = {shard.number for shard in shards.parts}
        removed = [number for number in held if number not in known]
        if removed:
            raise UserError("shards_changed", shard=changed[0].shard, removed=removed[0], hint="name all parts again")
        return {}
    return held


def _write(
    out: Path,
    shards: ShardRuns,
    held: Mapping[int, Mapping[str, Any]],
    parts: Mapping[int, ShardRun],
    missing: Sequence[int],
    unfinished: Sequence[int],
    notify: Callable[[str], None],
) -> None:
    """Write the merged record with its audio, and replace the old one atomically."""
    making = out / _UNDER_WAY
    shutil.rmtree(making, ignore_errors=True)
    first = shards.parts[0]
    sources = [*([out] if held else []), *(shard.folder for shard in parts.values())]
    with closing(Run(first.folder)) as run:
        kind: type[RunWriter] = AnswerWriter if has_answers(run) else RunWriter
        meta, systems, metrics = run.meta, run.systems, run.metrics
    metas = []
    for folder in sources:
        with closing(Run(folder)) as run:
            metas.append(run.meta)
    common = _common(metas)
    added = zip(parts.values(), metas[len(metas) - len(parts) :])
    with closing(kind(making, first.fingerprint)) as writer:
        writer.begin(systems, metrics, ())
        notify(f"merging {len(sources)} records")
        writer.gather([source / DATABASE for source in sources], leave_out=_ONCE)
        state = "finished" if not (missing or unfinished) else "partial"
        before = [known for one in metas for known in ([one[MERGED]] if one.get(MERGED) else [])]
        writer.set_meta(
            **{key: value for key, value in meta.items() if key not in _NOT_COPIED},
            **common,
            state=state,
            merged={
                "of": shards.of,
                "parts": {
                    **{number: facts for known in before for number, facts in known["parts"].items()},
                    **{
                        str(shard.number): {
                            "folder": str(shard.folder), "content": shard.content, "complete": shard.finished,
                            **{key: merged.get(key) for key in ("machine", "how", "started", "finished")},
                        }
                        for shard, merged in added
                    },
                },
                "missing": list(missing),
            },
        )  # fmt: skip
        config = {k: v for k, v in (meta.get("config") or {}).items() if k != "shard"}
        if meta.get("arguments"):
            writer.set_meta(arguments={**meta["arguments"], "shard": None})
        data = {**(meta.get("data") or {}), "samples": writer.count("samples")}
        writer.set_meta(config=config, data=data)
        if meta.get("flag_unchecked"):
            writer.flag_unchecked(common.get("checks") or {}, **meta["flag_unchecked"])
    notify("copying the saved audio")
    for shard in parts.values():
        _link_audio(shard.folder / "audio", out / "audio")
    integrity.remove_seal(out)
    os.replace(making / DATABASE, out / DATABASE)
    integrity.write_seal(out)
    shutil.rmtree(making, ignore_errors=True)


def _common(metas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the entries that the merged records have each for their own part.

    They are `started` (earliest), `finished` (latest), summed `timings` and `answering`, joined `checks` and `canary`.
    """
    times: dict[str, dict[str, float]] = {}
    totals = {"items": 0, "audio_s": 0.0}
    checks: dict[str, dict[str, Any]] = {}
    for meta in metas:
        timings = meta.get("timings") or {}
        for name in totals:
            totals[name] += timings.get(name) or 0
        for system, spent in (timings.get("systems") or {}).items():
            summed = times.setdefault(system, {"encode_s": 0.0, "decode_s": 0.0, "audio_s": 0.0})
            for step in summed:
                summed[step] += spent.get(step, 0.0)
        for system, entry in (meta.get("checks") or {}).items():
            _add_checks(checks.setdefault(system, {"ok": [], "findings": [], "unchecked": []}), entry)
    for spent in times.values():
        spent["times_real_time"] = spent["audio_s"] / (spent["encode_s"] + spent["decode_s"])
    when = {
        key: chosen(values)
        for key, chosen in (("started", min), ("finished", max))
        if (values := [meta[key] for meta in metas if meta.get(key)])
    }
    return {
        **when, "timings": {**totals, "systems": times}, **({"checks": checks} if checks else {}), **_of_asking(metas)
    }  # fmt: skip


def _of_asking(metas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of questions and the repeated questions of all parts."""
    asking = [meta["answering"] for meta in metas if meta.get("answering")]
    canaries = [one for meta in metas for one in meta.get("canary") or ()]
    return {
        **({"answering": {name: sum(one.get(name) or 0 for one in asking) for name in _SUMMED}} if asking else {}),
        **({"canary": canaries} if canaries else {}),
    }


def _add_checks(summed: dict[str, Any], added: Mapping[str, Any]) -> None:
    """Add a part's check results. A check with a finding in one part is not ok."""
    for finding in added.get("findings") or ():
        if finding["check"] not in {one["check"] for one in summed["findings"]}:
            summed["findings"].append(finding)
    failing = {one["check"] for one in summed["findings"]}
    summed["ok"] = sorted({*summed["ok"], *(added.get("ok") or ())} - failing)
    settled = {*summed["ok"], *failing}
    left = {one["check"]: one for one in [*summed["unchecked"], *(added.get("unchecked") or ())]}
    summed["unchecked"] = [one for name, one in left.items() if name not in settled]


def _link_audio(source: Path, target: Path) -> None:
    """Link or copy the audio of a shard into the merged run."""
    for path in sorted(source.rglob("*")) if source.is_dir() else ():
        target_path = target / path.relative_to(source)
        with on_disk("not_copied", path=path, to=target_path):
            if path.is_dir():
                target_path.mkdir(parents=True, exist_ok=True)
                continue
            target_path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                target_path.unlink()
            _link(path, target_path)


def _link(path: Path, target: Path) -> None:
    try:
        os.link(path, target)
    except OSError:  # another file system, or one without links
        shutil.copy2(path, target)
