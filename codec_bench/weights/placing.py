"""Places a checkpoint's files: selection, download, folder and record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.messages import of_error, together
from codec_bench.messages.errors import WeightsError
from codec_bench.weights.catalogue import Checkpoint, CheckpointVariant
from codec_bench.weights.download import Progress, Unreachable, WrongContent, check_room, download
from codec_bench.weights.find import LocalCheckpoint, download_folder
from codec_bench.weights.origin import Origin

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """A checkpoint to fetch.

    Args:
        to: the folder that gets `<name>/`; None for the hub's cache or the project's download folder.
        notify: called with each sentence for the user. progress: called as bytes arrive, or None.
    """

    entry: Checkpoint
    to: Path | None
    notify: Notify
    progress: Progress | None


def hub_endpoint() -> str:
    """Return the address of the Hugging Face hub or its replacement."""
    from huggingface_hub import constants

    return constants.ENDPOINT.rstrip("/")


def choose(entry: Checkpoint, listed: Any, where: str) -> list[str]:
    """Return the preferred form of each file that a source has.

    Args:
        listed: contains the paths of the source's files. where: the source, for the message.

    Raises:
        Unreachable: the source lacks a file.
    """
    chosen = []
    for file in entry.files:
        path = next((v.path for v in file.variants if v.path in listed), None)
        if path is not None:
            chosen.append(path)
        elif not file.optional:
            raise Unreachable("source_lacks", source=where, names=", ".join(v.path for v in file.variants))
    return chosen


def place_files(
    order: Order,
    candidates: Sequence[tuple[CheckpointVariant, Sequence[str]]],
    source: str,
    revision: str | None,
    headers: dict[str, str] | None = None,
) -> LocalCheckpoint:
    """Download each file from its first working address, and record the origin.

    Args:
        candidates: the files with their addresses. source, revision: for the record.

    Raises:
        Unreachable, WrongContent: no address of a file worked.
        WeightsError: the disk has too little room, or another process fetches the same checkpoint.
    """
    with folder_of(order) as folder:
        check_room(folder, sum(v.size or 0 for v, _ in candidates), f"'{order.entry.name}'")
        files = {}
        for variant, urls in candidates:
            (folder / variant.path).parent.mkdir(parents=True, exist_ok=True)
            sha256, url = _download_first(order, variant, urls, folder, headers or {})
            files[variant.path] = {"size": (folder / variant.path).stat().st_size, "sha256": sha256, "url": url}
        origin = Origin(order.entry.name, source, revision, files)
        origin.write(folder)
    return LocalCheckpoint(folder, origin.used, order.entry.inside(folder) or tuple(files))


def _download_first(
    order: Order, variant: CheckpointVariant, urls: Sequence[str], folder: Path, headers: dict[str, str]
) -> tuple[str, str]:
    """Download a file from the first URL that works; returns hash and URL."""
    failures: list[WeightsError] = []
    for url in urls:
        try:
            known: dict[str, Any] = {
                "size": variant.size,
                "sha256": variant.sha256,
                "headers": {**headers, **_hub_token(url)},
            }
            return download(url, folder / variant.path, **known, progress=order.progress), url
        except (Unreachable, WrongContent) as error:
            failures.append(error)
            if len(failures) < len(urls):
                order.notify(f"{error.message}; trying {urls[len(failures)]}")
    raise joined(failures)


def _hub_token(url: str) -> dict[str, str]:
    """Return the user's token for addresses of the hub, and for no others."""
    from huggingface_hub import get_token

    token = get_token() if url.startswith(f"{hub_endpoint()}/") else None
    return {"Authorization": f"Bearer {token}"} if token else {}


def joined(failures: Sequence[WeightsError]) -> WeightsError:
    """Join several failures to one, of the class of the last."""
    message = together(*dict.fromkeys(of_error(error) for error in failures))
    return type(failures[-1])(message or "", hint=failures[0].hint)


@contextmanager
def folder_of(order: Order) -> Iterator[Path]:
    """Lock a checkpoint's folder; WeightsError if another process has it."""
    from filelock import FileLock, Timeout

    folder = (order.to or download_folder()) / order.entry.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield folder
    except Timeout as error:
        raise WeightsError(
            "weights_being_fetched", name=order.entry.name, folder=folder, hint="wait until it has finished"
        ) from error
