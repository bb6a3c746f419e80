"""Fetches a checkpoint from a hub, ModelScope, a URL, mirror or folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, get_args

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.weights.catalogue import Checkpoint, checkpoint
from codec_bench.weights.download import Progress, Unreachable, WrongContent
from codec_bench.weights.find import WEIGHTS_VARIABLE, LocalCheckpoint, download_folder, lookup, places_in
from codec_bench.weights.from_files import from_folder, from_server, from_urls
from codec_bench.weights.from_hub import from_hub
from codec_bench.weights.from_modelscope import from_modelscope, modelscope_endpoint
from codec_bench.weights.origin import RECORD
from codec_bench.weights.placing import Notify, Order, hub_endpoint, joined
from codec_bench.weights.verify import verify

Source = Literal["hub", "modelscope", "url"]
_COMMIT = re.compile("^[0-9a-f]{40}$")


def fetch(
    name: str,
    *,
    source: Source | None = None,
    mirror: str | None = None,
    to: Path | None = None,
    notify: Notify = lambda text: None,
    progress: Progress | None = None,
) -> LocalCheckpoint:
    """Fetch a checkpoint, unless it is on this machine and its files are correct.

    Args:
        name: a name of the catalogue.
        source: the only source to use; None tries all sources of the entry, the hub first.
        mirror: an address in place of the hub, of ModelScope or of a URL's host; or a folder.
        to: a folder that gets `<name>/`, in place of the Hugging Face cache or the project's download folder. Name it
            in $CODEC_BENCH_WEIGHTS to use it.
        notify: called with each sentence for the user, such as the licence.
        progress: called as bytes arrive, or None.

    Raises:
        WeightsError: no source has the checkpoint, a file is wrong, or the disk has too little room.
        UserError: the entry has no such source.
    """
    entry = checkpoint(name)
    to = to.expanduser().absolute() if to is not None else None
    if source is not None and source not in get_args(Source):
        raise UserError("no_source", source=source, hint=f"use {', '.join(get_args(Source))}")
    here = _find_local(entry, to)
    if here is not None:
        wrong = [check.path for check in verify(name, here) if check.state == "differs"]
        if not wrong:
            notify(f"{name} is here already: {here.folder}")
            return here
        notify(f"{name} is here, but {', '.join(wrong)} has not the expected content: fetching it again")
        _discard(here, wrong, to / name if to else None)
    marked = " (non-commercial)" if entry.non_commercial else ""
    notify(f"{name}, {entry.size_text}; licence of the weights: {entry.licence}{marked}")
    order = Order(entry, to, notify, progress)
    try:
        fetched = _from_mirror(order, mirror, source) if mirror else _from_sources(order, source)
    except OSError as error:
        raise WeightsError("weights_not_written", name=name, cause=error.strerror or error) from error
    failed = [check for check in verify(name, fetched) if check.state == "differs"]
    if failed:
        _discard(fetched, [check.path for check in failed], to / name if to else None)
        raise WeightsError("fetched_unexpected", name=name, reason=failed[0].reason)
    return fetched


def _find_local(entry: Checkpoint, to: Path | None) -> LocalCheckpoint | None:
    """Locate a checkpoint of the catalogue's commit on this machine, or return None."""
    if to is None:
        local = lookup(entry.name)
        if local is None:
            return None
        ours = local.used.startswith(f"{entry.hub}@") and _COMMIT.match(entry.revision or "")
        return None if ours and local.used != f"{entry.hub}@{entry.revision}" else local
    for folder, used in places_in(to, entry):
        files = entry.inside(folder)
        if files is not None:
            return LocalCheckpoint(folder, used, files)
    return None


def _discard(checkpoint: LocalCheckpoint, paths: Sequence[str], target: Path | None) -> None:
    """Remove wrong files, but only from codec-bench's or the hub's folders."""
    for path in paths:
        file = checkpoint.folder / path
        real = file.resolve()
        cached = file.is_symlink() and real.parent.name == "blobs"
        filled = (checkpoint.folder / RECORD).is_file() or checkpoint.folder == target
        if not (cached or filled):
            raise WeightsError(
                "file_not_expected", file=file, hint="remove it or put the right file there, then run the command again"
            )
        file.unlink(missing_ok=True)
        if cached:
            real.unlink(missing_ok=True)


def _from_sources(order: Order, source: Source | None, endpoint: str | None = None) -> LocalCheckpoint:
    """Download from the first source that works, or from the requested one."""
    entry = order.entry
    ways: dict[Source, Callable[[], LocalCheckpoint]] = {}
    if entry.hub is not None:
        ways["hub"] = lambda: from_hub(order, endpoint or hub_endpoint())
    if entry.modelscope is not None:
        ways["modelscope"] = lambda: from_modelscope(order, endpoint or modelscope_endpoint())
    if all(file.optional or any(v.url or v.mirrors for v in file.variants) for file in entry.files):
        ways["url"] = lambda: from_urls(order)
    if source is not None:
        if source not in ways:
            has = ", ".join(ways) or "none"
            raise UserError("weights_without_source", name=entry.name, source=source, hint=f"its sources: {has}")
        ways = {source: ways[source]}
    if not ways:
        raise _manual_error(entry, [])
    failures: list[WeightsError] = []
    for at, download in enumerate(ways.values()):
        try:
            return download()
        except (Unreachable, WrongContent) as error:
            failures.append(error)
            if at + 1 < len(ways):
                order.notify(f"{error.message}; trying {list(ways)[at + 1]}")
    if entry.manual:
        raise _manual_error(entry, failures)
    raise joined(failures)


def _manual_error(entry: Checkpoint, failures: Sequence[WeightsError]) -> WeightsError:
    """Build the error that explains how to place the files by hand."""
    names = ", ".join(file.path for file in entry.files if not file.optional)
    origin = f"from {entry.homepage}: " if entry.homepage else ""
    problem = Diagnostic("by_hand", name=entry.name)
    if failures:
        problem = Diagnostic("weights_not_fetched", name=entry.name, cause=joined(failures).message)
    return WeightsError(
        problem,
        hint=f"{'by hand: ' + origin + entry.manual + ' ' if entry.manual else ''}Put {names} into "
        f"'{download_folder() / entry.name}', or into {entry.name}/ in a folder that {WEIGHTS_VARIABLE} names; then: "
        f"codec-bench weights verify {entry.name}",
    )


def _from_mirror(order: Order, mirror: str, source: Source | None) -> LocalCheckpoint:
    """Fetch from a mirror: a folder, a hub's endpoint, or the base of URLs."""
    if "://" not in mirror:
        return from_folder(order, Path(mirror).expanduser())
    if not mirror.startswith(("https://", "http://")):
        raise UserError("mirror_form", mirror=mirror)
    entry, endpoint = order.entry, mirror.rstrip("/")
    if source != "url" and (entry.hub or entry.modelscope):
        only: Source = source or ("hub" if entry.hub else "modelscope")
        try:
            return _from_sources(order, only, endpoint)
        except Unreachable as error:
            try:  # a plain file server with the catalogue's names
                return from_server(order, endpoint)
            except Unreachable:
                raise error from None
    return from_server(order, endpoint)
