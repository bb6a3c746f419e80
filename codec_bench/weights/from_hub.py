"""Fetches a checkpoint from the Hugging Face hub, or a compatible hub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codec_bench.config.network import TIMEOUT_S
from codec_bench.messages.errors import WeightsError, hub_fault
from codec_bench.weights.catalogue import Checkpoint, readable
from codec_bench.weights.download import Unreachable, check_room, refuse_offline
from codec_bench.weights.find import LocalCheckpoint
from codec_bench.weights.origin import Origin
from codec_bench.weights.placing import Order, choose, hub_endpoint


def from_hub(order: Order, endpoint: str) -> LocalCheckpoint:
    """Fetch through huggingface_hub, into its cache or into a folder.

    Raises:
        Unreachable: the hub lacks the files.
        WeightsError: the hub's files are not those of the catalogue, or the disk has too little room.
    """
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.hf_api import RepoFolder
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    refuse_offline()
    entry, to = order.entry, order.to
    repo = str(entry.hub)
    token = None if endpoint == hub_endpoint() else False  # a mirror must not get the user's token
    silent = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if silent:
        disable_progress_bars()
    try:
        api = HfApi(endpoint=endpoint, token=token)
        commit = str(api.model_info(repo, revision=entry.revision, timeout=TIMEOUT_S).sha)
        listed = {
            item.path: (item.size, item.lfs.sha256 if item.lfs is not None else None)
            for item in api.list_repo_tree(repo, recursive=True, revision=commit)
            if not isinstance(item, RepoFolder)
        }
        chosen = choose(entry, listed, f"{endpoint}/{repo}")
        _as_pinned(entry, chosen, listed, commit)
        target = Path(constants.HF_HUB_CACHE) if to is None else to / entry.name
        needed = sum(listed[path][0] for path in chosen)
        check_room(target, needed, f"'{entry.name}'")
        order.notify(f"fetching {readable(needed)} from {endpoint}/{repo} at {commit}")
        options: dict[str, Any] = {"endpoint": endpoint, "token": token, "etag_timeout": TIMEOUT_S}
        local = None if to is None else target
        folder = Path(
            snapshot_download(repo, revision=entry.revision, allow_patterns=chosen, local_dir=local, **options)
        )
    except WeightsError:
        raise
    except Exception as error:  # the error classes of huggingface_hub and its HTTP library change between releases
        raise _hub_error(error, repo, endpoint, entry) from error
    finally:
        if silent:
            enable_progress_bars()
    files = entry.inside(folder)
    if files is None:
        raise Unreachable("hub_gave_less", endpoint=endpoint, repository=repo, names=", ".join(entry.missing(folder)))
    if to is not None:
        records = {path: {"size": listed[path][0], "sha256": listed[path][1], "url": None} for path in chosen}
        Origin(entry.name, repo, commit, records).write(folder)
    return LocalCheckpoint(folder, f"{repo}@{commit}", files)


def _as_pinned(
    entry: Checkpoint, chosen: Sequence[str], listed: dict[str, tuple[int, str | None]], commit: str
) -> None:
    """Refuse files with another declared size or SHA-256 than the catalogue's."""
    for path in chosen:
        pinned, (size, sha256) = entry.variant(path), listed[path]
        if pinned is None or commit != entry.revision:
            continue
        if pinned.sha256 and sha256 and pinned.sha256 != sha256:
            raise WeightsError("hub_digest_unexpected", path=path, sha256=sha256, expected=pinned.sha256)
        if pinned.size and pinned.size != size:
            raise WeightsError("hub_size_unexpected", path=path, size=size, expected=pinned.size)


def _hub_error(error: Exception, repo: str, endpoint: str, entry: Checkpoint) -> WeightsError:
    """Convert an error of the hub to one with a hint."""
    page, (fault, answer) = f"{endpoint}/{repo}", hub_fault(error)
    match fault:
        case "gated":
            return Unreachable(
                "repository_gated",
                repository=repo,
                hint=f"accept them at {page}, then set HF_TOKEN to a token of that account (or: hf auth login)",
            )
        case "revision":
            return Unreachable("repository_revision", repository=repo, revision=entry.revision, hint=f"see {page}")
        case "missing":
            return Unreachable(
                "hub_missing",
                subject=f"'{page}'",
                answer=answer,
                hint="set HF_TOKEN if it needs a permission; for another hub use --from URL, for a copy --from FOLDER",
            )
        case "server":
            return Unreachable(
                "hub_not_fetched",
                subject=f"'{page}'",
                answer=answer,
                hint="try again later, or use a mirror: --from URL",
            )
        case "disk":
            return WeightsError("hub_disk", cause=answer)
        case "network":
            return Unreachable(
                "hub_unreachable",
                subject=f"'{endpoint}'",
                cause=answer,
                hint="check the network and its proxy; for a mirror use --from URL or HF_ENDPOINT, for a copy --from "
                "FOLDER",
            )
