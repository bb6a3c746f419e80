"""Fetches a checkpoint from URLs of files, a plain file server, or a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from codec_bench.messages.errors import WeightsError
from codec_bench.weights.catalogue import CheckpointVariant, hub_file
from codec_bench.weights.download import Unreachable, check_room, read_json, refuse_offline
from codec_bench.weights.find import LocalCheckpoint, places_in
from codec_bench.weights.origin import RECORD, Origin, git_id_of, parse_origin, read_hub_declaration, read_origin
from codec_bench.weights.placing import Order, folder_of, hub_endpoint, place_files

_CHUNK = 1 << 20


def from_urls(order: Order) -> LocalCheckpoint:
    """Fetch each file from its addresses in the catalogue.

    Raises:
        Unreachable, WrongContent: no address of a file worked.
    """
    refuse_offline()
    candidates = []
    for file in order.entry.files:
        variant = next((v for v in file.variants if v.url or v.mirrors), None)
        if variant is not None:
            endpoint = hub_endpoint() if any(m.startswith("hf://") for m in variant.mirrors) else ""
            urls = [*filter(None, [variant.url]), *(hub_file(mirror, endpoint) for mirror in variant.mirrors)]
            order.notify(f"fetching {variant.path} from {urls[0]}")
            candidates.append((variant, urls))
    source = next((v.url for v, _ in candidates if v.url), candidates[0][1][0])
    return place_files(order, candidates, source, None)


def from_server(order: Order, base: str) -> LocalCheckpoint:
    """Fetch from a plain file server with the folders of `--to`.

    Raises:
        Unreachable, WrongContent: it lacks a file.
    """
    refuse_offline()
    entry = order.entry
    base = f"{base}/{entry.name}"
    try:
        origin = parse_origin(json.dumps(read_json(f"{base}/{RECORD}", {})), entry.name)
    except Unreachable:
        origin = None  # then only the catalogue describes the files
    order.notify(f"fetching from {base}")
    candidates = []
    for file in entry.files:
        known = origin.files if origin else {}
        variant = next((v for v in file.variants if v.path in known), None if origin and file.optional else file)
        if variant is None or (file.optional and origin is None):
            continue
        listed = known.get(variant.path, {})
        exact = CheckpointVariant(
            path=variant.path, size=variant.size or listed.get("size"), sha256=variant.sha256 or listed.get("sha256")
        )
        candidates.append((exact, [f"{base}/{quote(variant.path)}"]))
    source, revision = (origin.source, origin.revision) if origin else (base, None)
    return place_files(order, candidates, source, revision)


def from_folder(order: Order, root: Path) -> LocalCheckpoint:
    """Copy from a mirror, a hub cache, another download folder, or a folder of files.

    Raises:
        WeightsError: the folder lacks a file, holds a wrong one, or is the target.
    """
    entry = order.entry
    if not root.is_dir():
        raise WeightsError("no_mirror_folder", folder=root, name=entry.name)
    here = next(
        (folder for folder, _ in (*places_in(root, entry), (root, "")) if entry.inside(folder) is not None), None
    )
    if here is None:
        parts = [f"{name}/" for name in dict.fromkeys(filter(None, (entry.hub, entry.modelscope, entry.name)))]
        raise WeightsError(
            "mirror_folder_lacks",
            folder=root,
            names=", ".join(entry.missing(root)),
            hint=f"put them into it, or into {' or '.join(parts)} there",
        )
    paths = entry.inside(here) or ()
    origin = read_origin(here, entry.name)
    commit = here.name if here.parent.name == "snapshots" else None
    source = origin.source if origin else str(entry.hub) if commit else str(here)
    with folder_of(order) as folder:
        if folder.resolve() == here.resolve():
            raise WeightsError("mirror_is_target", folder=here, hint="name another folder with --from, or with --to")
        order.notify(f"copying from {here}")
        check_room(folder, sum((here / path).stat().st_size for path in paths), f"'{entry.name}'")
        files = {path: _copy_verified(order, here, folder, path, origin) for path in paths}
        written = Origin(entry.name, source, origin.revision if origin else commit, files)
        written.write(folder)
    return LocalCheckpoint(folder, written.used, paths)


def _copy_verified(order: Order, here: Path, folder: Path, path: str, origin: Origin | None) -> dict[str, Any]:
    """Copy one file, and check its SHA-256 where it is known; returns facts."""
    pinned, recorded = order.entry.variant(path), (origin.files if origin else {}).get(path, {})
    hub = read_hub_declaration(here / path)
    expected = recorded.get("sha256") or (hub.sha256 if hub else None) or (pinned.sha256 if pinned else None)
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    digest, size, done = hashlib.sha256(), (here / path).stat().st_size, 0
    with (here / path).open("rb") as source, partial.open("wb") as copy:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            copy.write(chunk)
            done += len(chunk)
            if order.progress is not None:
                order.progress(target.name, done, size)
    if expected is not None and digest.hexdigest() != expected:
        partial.unlink()
        raise WeightsError("digest_unexpected", path=here / path, digest=digest.hexdigest(), expected=expected)
    if hub is not None and hub.git_id is not None and git_id_of(partial) != hub.git_id:
        partial.unlink()
        raise WeightsError("git_id_unexpected", path=here / path, git_id=hub.git_id)
    partial.replace(target)
    return {"size": size, "sha256": digest.hexdigest(), "url": recorded.get("url")}
