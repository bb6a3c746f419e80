"""Fetches a checkpoint from ModelScope, or a compatible server."""

from __future__ import annotations

import os
from urllib.parse import quote

from codec_bench.weights.catalogue import CheckpointVariant, readable
from codec_bench.weights.download import Unreachable, read_json, refuse_offline
from codec_bench.weights.find import LocalCheckpoint
from codec_bench.weights.placing import Order, choose, place_files


def modelscope_endpoint() -> str:
    """Return ModelScope's address, or the environment's."""
    named = os.environ.get("MODELSCOPE_DOMAIN") or "www.modelscope.cn"
    return (named if "://" in named else f"https://{named}").rstrip("/")


def from_modelscope(order: Order, endpoint: str) -> LocalCheckpoint:
    """Fetch through ModelScope's HTTP interface, which has sizes and SHA-256.

    Raises:
        Unreachable: ModelScope lacks the files.
        WrongContent: a file is not as ModelScope declares.
    """
    refuse_offline()
    entry = order.entry
    repo, revision = str(entry.modelscope), entry.modelscope_revision or "master"
    base = f"{endpoint}/api/v1/models/{quote(repo)}/repo"
    headers = _headers() if endpoint == modelscope_endpoint() else {}
    answer = read_json(f"{base}/files?Revision={quote(revision, safe='')}&Recursive=True", headers)
    try:
        items = [item for item in answer["Data"]["Files"] if item.get("Type") != "tree"]
        listed = {item["Path"]: (int(item["Size"]), item.get("Sha256") or None) for item in items}
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable("modelscope_answer", url=endpoint, repository=repo) from error
    chosen = choose(entry, listed, f"{endpoint}/models/{repo}")
    needed = readable(sum(listed[path][0] for path in chosen))
    order.notify(f"fetching {needed} from {endpoint}/models/{repo} at {revision}")
    candidates = [
        (CheckpointVariant(path=path, size=listed[path][0], sha256=listed[path][1]),
         [f"{base}?Revision={quote(revision, safe='')}&FilePath={quote(path, safe='')}"])
        for path in chosen
    ]  # fmt: skip
    return place_files(order, candidates, repo, revision, headers)


def _headers() -> dict[str, str]:
    token = os.environ.get("MODELSCOPE_API_TOKEN")
    return {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"} if token else {}
