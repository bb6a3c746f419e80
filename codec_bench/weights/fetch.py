"""Fetching a checkpoint to this machine: from the Hugging Face hub, ModelScope, a URL, a mirror of these, or a folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import quote

from codec_bench.errors import UserError, WeightsError
from codec_bench.weights import download as http
from codec_bench.weights.catalogue import Checkpoint, Variant, checkpoint, hub_file
from codec_bench.weights.download import (
    Progress,
    Unreachable,
    WrongContent,
    check_room,
    download,
    readable,
    refuse_offline,
)
from codec_bench.weights.find import WEIGHTS_VARIABLE, Found, download_folder, lookup, places_in
from codec_bench.weights.origin import RECORD, Origin, git_id_of, parse_origin, read_origin, said_by_hub
from codec_bench.weights.verify import verify

Source = Literal["hub", "modelscope", "url"]
Tell = Callable[[str], None]
_CHUNK = 1 << 20
_COMMIT = re.compile("^[0-9a-f]{40}$")


def fetch(
    name: str,
    *,
    source: Source | None = None,
    mirror: str | None = None,
    to: Path | None = None,
    tell: Tell = lambda text: None,
    progress: Progress | None = None,
) -> Found:
    """Fetches a checkpoint, unless it is on this machine already and all checks of its files succeed.

    Args:
        name: a name of the catalogue.
        source: the only source to use; None tries all sources of the entry, the hub first.
        mirror: an address to use in place of the hub, of ModelScope or of a URL's host; or a folder.
        to: a folder that gets `<name>/`, in place of the Hugging Face cache or the project's download folder. Name it in
            $CODEC_BENCH_WEIGHTS to use it.
        tell: called with each sentence that a person should see, such as the licence.
        progress: called as bytes arrive, or None.

    Raises:
        WeightsError: no source could give the checkpoint, a file is not the expected one, or the disk has too little room.
        UserError: the entry has no such source.
    """
    entry = checkpoint(name)
    to = to.expanduser().absolute() if to is not None else None
    if source is not None and source not in get_args(Source):
        raise UserError(f"there is no source '{source}'", hint=f"use {', '.join(get_args(Source))}")
    here = _here(entry, to)
    if here is not None:
        wrong = [check.path for check in verify(name, here) if check.state == "differs"]
        if not wrong:
            tell(f"{name} is here already: {here.folder}")
            return here
        tell(f"{name} is here, but {', '.join(wrong)} has not the expected content: fetching it again")
        _forget(here, wrong, to / name if to else None)
    marked = " (non-commercial)" if entry.non_commercial else ""
    size = f", {readable(entry.size)}" if entry.size else ""
    tell(f"{name}{size}; licence of the weights: {entry.licence}{marked}")
    try:
        found = _from_mirror(entry, mirror, source, to, tell, progress) if mirror else None
        if found is None:
            found = _from_sources(entry, source, to, None, tell, progress)
    except OSError as error:
        raise WeightsError(f"the weights '{name}' could not be written: {error.strerror or error}") from error
    failed = [check for check in verify(name, found) if check.state == "differs"]
    if failed:
        _forget(found, [check.path for check in failed], to / name if to else None)
        raise WeightsError(f"the weights '{name}' are not the expected ones: {failed[0].reason}; nothing was kept")
    return found


def _here(entry: Checkpoint, to: Path | None) -> Found | None:
    """The place of a checkpoint on this machine; None if it is not here or is another commit than the catalogue's."""
    if to is None:
        found = lookup(entry.name)
        if found is None:
            return None
        ours = found.used.startswith(f"{entry.hub}@") and _COMMIT.match(entry.revision or "")
        return None if ours and found.used != f"{entry.hub}@{entry.revision}" else found
    for folder, used in places_in(to, entry):
        files = entry.inside(folder)
        if files is not None:
            return Found(folder, used, files)
    return None


def _forget(found: Found, paths: Sequence[str], target: Path | None) -> None:
    """Removes files with wrong content, but only from a folder that codec-bench or the hub filled.

    Raises:
        WeightsError: a file lies in a folder of the user's.
    """
    for path in paths:
        file = found.folder / path
        real = file.resolve()
        cached = file.is_symlink() and real.parent.name == "blobs"
        filled = (found.folder / RECORD).is_file() or found.folder == target
        if not (cached or filled):
            raise WeightsError(
                f"'{file}' has not the expected content, and it lies in a folder of your own",
                hint="remove it or put the right file there, then run the command again",
            )
        file.unlink(missing_ok=True)
        if cached:
            real.unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------------- which source


def _from_sources(
    entry: Checkpoint,
    source: Source | None,
    to: Path | None,
    endpoint: str | None,
    tell: Tell,
    progress: Progress | None,
) -> Found:
    """Fetches from the first of the entry's sources that can give the checkpoint."""
    ways: dict[Source, Callable[[], Found]] = {}
    if entry.hub is not None:
        ways["hub"] = lambda: _from_hub(entry, endpoint or _hub_endpoint(), to, tell)
    if entry.modelscope is not None:
        ways["modelscope"] = lambda: _from_modelscope(entry, endpoint or _modelscope_endpoint(), to, tell, progress)
    if all(file.optional or _addresses(file.variants) for file in entry.files):
        ways["url"] = lambda: _from_urls(entry, to, tell, progress)
    if source is not None:
        if source not in ways:
            has = ", ".join(ways) or "none"
            raise UserError(f"the weights '{entry.name}' have no source '{source}'", hint=f"its sources: {has}")
        ways = {source: ways[source]}
    if not ways:
        raise _by_hand(entry, [])
    failures: list[WeightsError] = []
    for at, way in enumerate(ways.values()):
        try:
            return way()
        except (Unreachable, WrongContent) as error:
            failures.append(error)
            if at + 1 < len(ways):
                tell(f"{error.message}; trying {list(ways)[at + 1]}")
    if entry.manual:
        raise _by_hand(entry, failures)
    raise _all(failures)


def _all(failures: Sequence[WeightsError]) -> WeightsError:
    """Joins several failures to one, of the class of the last."""
    message = "; ".join(dict.fromkeys(error.message for error in failures))
    return type(failures[-1])(message, hint=failures[0].hint)


def _by_hand(entry: Checkpoint, failures: Sequence[WeightsError]) -> WeightsError:
    names = ", ".join(file.path for file in entry.files if not file.optional)
    what = f"the weights '{entry.name}' must be downloaded by hand" + (
        f" from {entry.homepage}" if entry.homepage else ""
    )
    if failures:
        what = f"the weights '{entry.name}' could not be fetched: {_all(failures).message}"
    return WeightsError(
        what,
        hint=f"{'by hand: ' + entry.manual + ' ' if entry.manual else ''}Put {names} into '{download_folder() / entry.name}', "
        f"or into {entry.name}/ in a folder that {WEIGHTS_VARIABLE} names; then: codec-bench weights verify {entry.name}",
    )


def _from_mirror(
    entry: Checkpoint, mirror: str, source: Source | None, to: Path | None, tell: Tell, progress: Progress | None
) -> Found:
    if "://" not in mirror:
        return _from_folder(entry, Path(mirror).expanduser(), to, tell, progress)
    if not mirror.startswith(("https://", "http://")):
        raise UserError(f"--from got '{mirror}'; expected https://..., http://... or a folder")
    endpoint = mirror.rstrip("/")
    if source != "url" and (entry.hub or entry.modelscope):
        only: Source = source or ("hub" if entry.hub else "modelscope")
        try:
            return _from_sources(entry, only, to, endpoint, tell, progress)
        except Unreachable as error:
            try:  # a plain file server, whose folders have the names of the catalogue
                return _from_server(entry, endpoint, to, tell, progress)
            except Unreachable:
                raise error from None
    return _from_server(entry, endpoint, to, tell, progress)


# ------------------------------------------------------------------------------------------------------------ hub


def _hub_endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT.rstrip("/")


def _from_hub(entry: Checkpoint, endpoint: str, to: Path | None, tell: Tell) -> Found:
    """Fetches by huggingface_hub, into its cache or into a folder."""
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.hf_api import RepoFolder
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    refuse_offline()
    repo = str(entry.hub)
    token = None if endpoint == _hub_endpoint() else False  # a mirror must not get the user's token
    silent = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if silent:
        disable_progress_bars()
    try:
        api = HfApi(endpoint=endpoint, token=token)
        commit = str(api.model_info(repo, revision=entry.revision, timeout=http.TIMEOUT_S).sha)
        listed = {
            item.path: (item.size, item.lfs.sha256 if item.lfs is not None else None)
            for item in api.list_repo_tree(repo, recursive=True, revision=commit)
            if not isinstance(item, RepoFolder)
        }
        chosen = _choose(entry, listed, f"{endpoint}/{repo}")
        _as_pinned(entry, chosen, listed, commit)
        place = Path(constants.HF_HUB_CACHE) if to is None else to / entry.name
        needed = sum(listed[path][0] for path in chosen)
        check_room(place, needed, f"'{entry.name}'")
        tell(f"fetching {readable(needed)} from {endpoint}/{repo} at {commit}")
        if to is not None:
            place.mkdir(parents=True, exist_ok=True)
        folder = Path(
            snapshot_download(
                repo,
                revision=entry.revision,
                allow_patterns=chosen,
                endpoint=endpoint,
                token=token,
                etag_timeout=http.TIMEOUT_S,
                cache_dir=place if to is None else None,
                local_dir=None if to is None else place,
            )
        )
    except WeightsError:
        raise
    except Exception as error:  # the error classes of huggingface_hub and its HTTP library change between releases
        raise _hub_trouble(error, repo, endpoint, entry) from error
    finally:
        if silent:
            enable_progress_bars()
    files = entry.inside(folder)
    if files is None:
        raise Unreachable(f"'{endpoint}/{repo}' did not give {', '.join(entry.missing(folder))}")
    if to is not None:
        said = {path: {"size": listed[path][0], "sha256": listed[path][1], "url": None} for path in chosen}
        Origin(entry.name, repo, commit, said).write(folder)
    return Found(folder, f"{repo}@{commit}", files)


def _as_pinned(
    entry: Checkpoint, chosen: Sequence[str], listed: dict[str, tuple[int, str | None]], commit: str
) -> None:
    """Refuses files that the hub itself describes with another size or SHA-256 than the catalogue, before fetching them."""
    for path in chosen:
        pinned, (size, sha256) = entry.variant(path), listed[path]
        if pinned is None or commit != entry.revision:
            continue
        if pinned.sha256 and sha256 and pinned.sha256 != sha256:
            raise WeightsError(f"the hub says that '{path}' has the SHA-256 {sha256}; expected {pinned.sha256}")
        if pinned.size and pinned.size != size:
            raise WeightsError(f"the hub says that '{path}' has {size} bytes; expected {pinned.size}")


def _choose(entry: Checkpoint, listed: Any, where: str) -> list[str]:
    """The form of each file that a source has, the preferred one first."""
    chosen = []
    for file in entry.files:
        path = next((v.path for v in file.variants if v.path in listed), None)
        if path is not None:
            chosen.append(path)
        elif not file.optional:
            raise Unreachable(f"'{where}' has no {' and no '.join(v.path for v in file.variants)}")
    return chosen


def _hub_trouble(error: Exception, repo: str, endpoint: str, entry: Checkpoint) -> WeightsError:
    from huggingface_hub import errors

    page = f"{endpoint}/{repo}"
    chain: list[BaseException] = [error]
    while (below := chain[-1].__cause__ or chain[-1].__context__) is not None and below not in chain:
        chain.append(below)
    status = next((r.status_code for e in chain if (r := getattr(e, "response", None)) is not None), None)
    if any(isinstance(e, errors.GatedRepoError) for e in chain):
        return Unreachable(
            f"the repository '{repo}' is gated: its owners want their terms accepted first",
            hint=f"accept them at {page}, then set HF_TOKEN to a token of that account (or: hf auth login)",
        )
    if any(isinstance(e, errors.RevisionNotFoundError) for e in chain):
        return Unreachable(f"the repository '{repo}' has no revision '{entry.revision}'", hint=f"see {page}")
    if any(isinstance(e, errors.RepositoryNotFoundError) for e in chain) or status in (401, 403, 404):
        return Unreachable(
            f"'{page}' does not exist, or you may not see it: the server answered {status}",
            hint="set HF_TOKEN if it needs a permission; for another hub use --from URL, for your own copy --from FOLDER",
        )
    if status is not None:
        return Unreachable(
            f"'{page}' could not be fetched: the server answered {status}",
            hint="try again later, or use a mirror: --from URL",
        )
    if isinstance(error, OSError) and error.filename is not None:
        return WeightsError(f"'{error.filename}' cannot be written: {error.strerror}")
    reason = str(chain[-1]).split("\n")[0] or type(chain[-1]).__name__
    return Unreachable(
        f"'{endpoint}' could not be reached: {reason}",
        hint="check the network and its proxy; for a mirror use --from URL or HF_ENDPOINT, for a copy on disk --from FOLDER",
    )


# ----------------------------------------------------------------------------------------------------- ModelScope


def _modelscope_endpoint() -> str:
    named = os.environ.get("MODELSCOPE_DOMAIN") or "www.modelscope.cn"
    return (named if "://" in named else f"https://{named}").rstrip("/")


def _modelscope_headers() -> dict[str, str]:
    token = os.environ.get("MODELSCOPE_API_TOKEN")
    return {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"} if token else {}


def _from_modelscope(entry: Checkpoint, endpoint: str, to: Path | None, tell: Tell, progress: Progress | None) -> Found:
    """Fetches by ModelScope's HTTP interface, which gives the size and SHA-256 of every file."""
    refuse_offline()
    repo, revision = str(entry.modelscope), entry.modelscope_revision or "master"
    base = f"{endpoint}/api/v1/models/{quote(repo)}/repo"
    headers = _modelscope_headers() if endpoint == _modelscope_endpoint() else {}
    answer = _json(f"{base}/files?Revision={quote(revision, safe='')}&Recursive=True", headers)
    try:
        items = [item for item in answer["Data"]["Files"] if item.get("Type") != "tree"]
        listed = {item["Path"]: (int(item["Size"]), item.get("Sha256") or None) for item in items}
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable(f"'{endpoint}' did not answer as ModelScope does for '{repo}'") from error
    chosen = _choose(entry, listed, f"{endpoint}/models/{repo}")
    tell(f"fetching {readable(sum(listed[path][0] for path in chosen))} from {endpoint}/models/{repo} at {revision}")
    wanted = [
        (Variant(path=path, size=listed[path][0], sha256=listed[path][1]),
         [f"{base}?Revision={quote(revision, safe='')}&FilePath={quote(path, safe='')}"])
        for path in chosen
    ]  # fmt: skip
    return _place(entry, wanted, repo, revision, to, progress, headers)


def _json(url: str, headers: dict[str, str]) -> Any:
    request = urllib.request.Request(url, headers={"User-Agent": "codec-bench"})
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=http.TIMEOUT_S) as answer:
            return json.loads(answer.read())
    except (OSError, HTTPException) as error:
        raise http.unreachable(url, error) from error
    except ValueError as error:
        raise Unreachable(f"'{url}' did not answer with JSON") from error


# ------------------------------------------------------------------------------------------- URLs, servers, folders


def _addresses(variants: Sequence[Variant]) -> bool:
    return any(v.url or v.mirrors for v in variants)


def _from_urls(entry: Checkpoint, to: Path | None, tell: Tell, progress: Progress | None) -> Found:
    refuse_offline()
    wanted = []
    for file in entry.files:
        variant = next((v for v in file.variants if v.url or v.mirrors), None)
        if variant is not None:
            endpoint = _hub_endpoint() if any(m.startswith("hf://") for m in variant.mirrors) else ""
            urls = [*filter(None, [variant.url]), *(hub_file(mirror, endpoint) for mirror in variant.mirrors)]
            tell(f"fetching {variant.path} from {urls[0]}")
            wanted.append((variant, urls))
    source = next((v.url for v, _ in wanted if v.url), wanted[0][1][0])
    return _place(entry, wanted, source, None, to, progress, {}, tell)


def _from_server(entry: Checkpoint, base: str, to: Path | None, tell: Tell, progress: Progress | None) -> Found:
    """Fetches from a server of plain files. Its folders have the layout of `--to` and of the download folder."""
    refuse_offline()
    base = f"{base}/{entry.name}"
    try:
        origin = parse_origin(json.dumps(_json(f"{base}/{RECORD}", {})), entry.name)
    except Unreachable:
        origin = None  # only the catalogue then says what the files must be
    tell(f"fetching from {base}")
    wanted = []
    for file in entry.files:
        known = origin.files if origin else {}
        variant = next((v for v in file.variants if v.path in known), None if origin and file.optional else file)
        if variant is None or (file.optional and origin is None):
            continue
        said = known.get(variant.path, {})
        exact = Variant(
            path=variant.path, size=variant.size or said.get("size"), sha256=variant.sha256 or said.get("sha256")
        )
        wanted.append((exact, [f"{base}/{quote(variant.path)}"]))
    source, revision = (origin.source, origin.revision) if origin else (base, None)
    return _place(entry, wanted, source, revision, to, progress, {})


def _place(
    entry: Checkpoint,
    wanted: Sequence[tuple[Variant, Sequence[str]]],
    source: str,
    revision: str | None,
    to: Path | None,
    progress: Progress | None,
    headers: dict[str, str],
    tell: Tell = lambda text: None,
) -> Found:
    """Downloads each file from the first of its addresses that gives it, and records where the files came from."""
    with _folder_of(entry, to) as folder:
        check_room(folder, sum(v.size or 0 for v, _ in wanted), f"'{entry.name}'")
        files = {}
        for variant, urls in wanted:
            (folder / variant.path).parent.mkdir(parents=True, exist_ok=True)
            sha256, url = _first(variant, urls, folder, headers, progress, tell)
            files[variant.path] = {"size": (folder / variant.path).stat().st_size, "sha256": sha256, "url": url}
        origin = Origin(entry.name, source, revision, files)
        origin.write(folder)
    return Found(folder, origin.used, entry.inside(folder) or tuple(files))


def _first(
    variant: Variant,
    urls: Sequence[str],
    folder: Path,
    headers: dict[str, str],
    progress: Progress | None,
    tell: Tell,
) -> tuple[str, str]:
    failures: list[WeightsError] = []
    for url in urls:
        try:
            sha256 = download(
                url,
                folder / variant.path,
                size=variant.size,
                sha256=variant.sha256,
                headers={**headers, **_hub_token(url)},
                progress=progress,
            )
            return sha256, url
        except (Unreachable, WrongContent) as error:
            failures.append(error)
            if len(failures) < len(urls):
                tell(f"{error.message}; trying {urls[len(failures)]}")
    raise _all(failures)


def _hub_token(url: str) -> dict[str, str]:
    """The user's token for addresses of the hub, and for no others."""
    from huggingface_hub import get_token

    token = get_token() if url.startswith(f"{_hub_endpoint()}/") else None
    return {"Authorization": f"Bearer {token}"} if token else {}


def _from_folder(entry: Checkpoint, root: Path, to: Path | None, tell: Tell, progress: Progress | None) -> Found:
    """Copies from a folder: a mirror, a hub cache, another machine's download folder, or a folder with the files."""
    if not root.is_dir():
        raise WeightsError(f"there is no folder '{root}' to take the weights '{entry.name}' from")
    here = next(
        (folder for folder, _ in (*places_in(root, entry), (root, "")) if entry.inside(folder) is not None), None
    )
    if here is None:
        parts = [f"{part}/" for part in dict.fromkeys(filter(None, (entry.hub, entry.modelscope, entry.name)))]
        raise WeightsError(
            f"the folder '{root}' has no {' and no '.join(entry.missing(root))}",
            hint=f"put them into it, or into {' or '.join(parts)} there",
        )
    paths = entry.inside(here) or ()
    origin = read_origin(here, entry.name)
    commit = here.name if here.parent.name == "snapshots" else None
    source = origin.source if origin else str(entry.hub) if commit else str(here)
    with _folder_of(entry, to) as folder:
        if folder.resolve() == here.resolve():
            raise WeightsError(
                f"the folder '{here}' is also the folder that the weights would be copied to",
                hint="name another folder with --from, or with --to",
            )
        tell(f"copying from {here}")
        check_room(folder, sum((here / path).stat().st_size for path in paths), f"'{entry.name}'")
        files = {path: _copy(entry, here, folder, path, origin, progress) for path in paths}
        made = Origin(entry.name, source, origin.revision if origin else commit, files)
        made.write(folder)
    return Found(folder, made.used, paths)


def _copy(
    entry: Checkpoint, here: Path, folder: Path, path: str, origin: Origin | None, progress: Progress | None
) -> dict[str, Any]:
    pinned, said = entry.variant(path), (origin.files if origin else {}).get(path, {})
    hub = said_by_hub(here / path)
    expected = said.get("sha256") or (hub.sha256 if hub else None) or (pinned.sha256 if pinned else None)
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    digest, size, done = hashlib.sha256(), (here / path).stat().st_size, 0
    with (here / path).open("rb") as source, part.open("wb") as copy:
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            copy.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(target.name, done, size)
    if expected is not None and digest.hexdigest() != expected:
        part.unlink()
        raise WeightsError(
            f"'{here / path}' has the SHA-256 {digest.hexdigest()}; expected {expected}; it was not kept"
        )
    if hub is not None and hub.git_id is not None and git_id_of(part) != hub.git_id:
        part.unlink()
        raise WeightsError(f"'{here / path}' is not what the hub gave: its git id is not {hub.git_id}; it was not kept")
    part.replace(target)
    return {"size": size, "sha256": digest.hexdigest(), "url": said.get("url")}


@contextmanager
def _folder_of(entry: Checkpoint, to: Path | None) -> Iterator[Path]:
    """The folder that gets a checkpoint's files. Only one process at a time can use it."""
    from filelock import FileLock, Timeout

    folder = (to or download_folder()) / entry.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            yield folder
    except Timeout as error:
        raise WeightsError(
            f"another process is fetching '{entry.name}' into '{folder}'", hint="wait until it has finished"
        ) from error
