"""Data sets in the hub's layout: on disk, in the hub's cache, and on a local server that answers as the hub does."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import forked
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
import yaml
from local_http import Connection, LocalServer

from codec_bench.engine import pool

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONVERTED = "fedcba9876543210fedcba9876543210fedcba98"
RATE = 16_000


def tone(number: int) -> np.ndarray:
    """A sound that tells its number: its length is 800 + number samples."""
    return (0.2 * np.sin(np.arange(800 + number) * (0.05 + 0.001 * number))).astype(np.float32)


def encoded(number: int, kind: str = "FLAC") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, tone(number), RATE, format=kind)
    return file.getvalue()


def rows(first: int, after: int, kind: str | None = None) -> list[dict]:
    """Rows as `datasets` writes them: a struct of bytes and path."""
    kinds = ("FLAC", "WAV", "MP3")
    return [
        {
            "id": f"u{at:03d}",
            "audio": {"bytes": encoded(at, kind or kinds[at % 3]), "path": f"clip{at}.flac"},
            "text": f"sentence {at}",
            "n": at,
        }
        for at in range(first, after)
    ]


def write_parquet(path: Path, held: list[dict], *, group: int = 4, schema: pa.Schema | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(held, schema=schema), path, row_group_size=group)
    return path


def shards(folder: Path, split: str, held: list[dict], sizes: list[int]) -> list[Path]:
    """Writes rows as `data/SPLIT-00000-of-0000N.parquet`, so many into each."""
    paths, start = [], 0
    for at, size in enumerate(sizes):
        path = folder / "data" / f"{split}-{at:05d}-of-{len(sizes):05d}.parquet"
        paths.append(write_parquet(path, held[start : start + size]))
        start += size
    assert start == len(held)
    return paths


@pytest.fixture
def layout(tmp_path) -> Path:
    """A mirror with OWNER/NAME in it: two configurations, three splits, several shards."""
    pytest.importorskip("datasets")
    root = tmp_path / "mirror" / "OWNER" / "NAME"
    shards(root, "test", rows(0, 25), [10, 8, 7])
    shards(root, "train", rows(30, 36), [6])
    write_parquet(root / "other" / "test-00000-of-00001.parquet", rows(50, 57))
    (root / "README.md").write_text(
        "---\nconfigs:\n"
        "- config_name: main\n  default: true\n  data_files:\n"
        "  - split: test\n    path: data/test-*\n  - split: train\n    path: data/train-*\n"
        "- config_name: other\n  data_files:\n  - split: test\n    path: other/test-*\n"
        "---\n# A data set\n",
        "utf-8",
    )
    return root


def into_cache(cache: Path, repo: str, source: Path, paths: list[str] | None = None, ref: str = "main") -> Path:
    """Lays files into a folder as the hub's cache holds them: blobs, a snapshot of links, a ref.

    Returns the snapshot.
    """
    folder = cache / f"datasets--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    for file in sorted(source.rglob("*")):
        path = file.relative_to(source).as_posix()
        if not file.is_file() or (paths is not None and path not in paths):
            continue
        content = file.read_bytes()
        blob = folder / "blobs" / hashlib.sha256(content).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = snapshot / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    (folder / "refs" / ref).write_text(COMMIT)
    return snapshot


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty hub cache, and no network."""
    from huggingface_hub import constants

    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


class Hub:
    """A server with data sets, as far as `huggingface_hub` and `datasets` ask for them; it keeps its requests."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, dict[str, bytes]]] = {}
        self.gated: set[str] = set()
        self.sent: list[tuple[str, str, int]] = []
        http = LocalServer(type("Handler", (_Handler,), {"hub": self}))
        self.url, self.close = http.url, http.close

    def add(self, repo: str, folder: Path, commit: str = COMMIT) -> None:
        files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        self.repos.setdefault(repo, {})[commit] = files

    def bytes_of(self, path: str) -> int:
        """How much of a file was sent."""
        return sum(size for method, requested, size in self.sent if method == "GET" and requested == path)


class _Handler(Connection):
    hub: Hub

    def do_HEAD(self):
        self._answer(b"")

    def do_GET(self):
        self._answer(b"")

    def do_POST(self):
        self._answer(self.body())

    def _answer(self, body):
        path = unquote(urlsplit(self.path).path)
        api = path.startswith("/api/datasets/")
        parts = path.removeprefix("/api").removeprefix("/datasets/").split("/")
        repo, rest = "/".join(parts[:2]), parts[2:]
        revisions = self.hub.repos.get(repo)
        if revisions is None:
            return self._refuse(401 if api else 404, "RepoNotFound")
        if rest == ["auth-check"]:
            return self._refuse(403, "GatedRepo")
        joined = "/".join(rest[1:])
        refs = {"main": COMMIT, "refs/convert/parquet": CONVERTED, COMMIT: COMMIT, CONVERTED: CONVERTED}
        ref = next((ref for ref in refs if joined == ref or joined.startswith(f"{ref}/")), "main" if not rest else None)
        files = revisions.get(refs.get(ref, ""))
        if files is None:
            return self._refuse(404, "RevisionNotFound")
        inside = joined[len(ref) + 1 :]
        if not api:
            return self._file(repo, refs[ref], inside, files)
        kind = rest[0] if rest else "revision"
        if kind == "revision":
            siblings = [{"rfilename": name} for name in files]
            about = {"_id": "1", "id": repo, "sha": refs[ref], "siblings": siblings, "private": False}
            about["cardData"] = next(yaml.safe_load_all(files.get("README.md", b"{}")), None)
            return self.send_json(200, {**about, "gated": "manual" if repo in self.hub.gated else False})
        if kind == "tree":
            return self.send_json(200, _tree(files, inside))
        if kind == "paths-info":
            requests = json.loads(body)["paths"] if body.startswith(b"{") else []
            return self.send_json(200, [item for name in requests for item in _entries(files, name)])
        return self.send(404, b"")

    def _file(self, repo, commit, name, files):
        if repo in self.hub.gated:
            return self._refuse(403, "GatedRepo")
        if name not in files:
            return self.send(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        content, status, headers = files[name], 200, {}
        etag = hashlib.sha256(content).hexdigest()
        if requested := self.headers.get("Range"):
            first, _, last = requested.removeprefix("bytes=").partition("-")
            begin = int(first) if first else len(content) - int(last)
            end = min(int(last) + 1, len(content)) if first and last else len(content)
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
            content, status = content[begin:end], 206
        headers |= {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "X-Linked-Etag": f'"{etag}"'}
        headers["X-Linked-Size"] = str(len(files[name]))
        self.hub.sent.append((self.command, name, len(content)))
        self.send(status, content, headers)

    def _refuse(self, status, code):
        self.send(status, b"", {"X-Error-Code": code})


def _entries(files, name):
    if name in files:
        content = files[name]
        return [{"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}]
    if any(path.startswith(f"{name}/") for path in files):
        return [{"type": "directory", "path": name, "oid": hashlib.sha1(name.encode()).hexdigest()}]
    return []


def _tree(files, folder):
    below = [path for path in files if not folder or path.startswith(f"{folder}/")]
    folders = {"/".join(path.split("/")[:depth]) for path in below for depth in range(1, path.count("/") + 1)}
    folders = {name for name in folders if name != folder and (not folder or name.startswith(f"{folder}/"))}
    return [item for name in [*sorted(folders), *below] for item in _entries(files, name)]


@pytest.fixture
def hub():
    """A server with no data set on it yet."""
    server = Hub()
    yield server
    server.close()


# Its libraries read the hub's address when they are imported, and a fork finds them imported already.
WITHOUT_LIBRARIES = """
import sys
import pyarrow
if "datasets" in sys.modules:
    for number in range(2, 6):
        pyarrow.unregister_extension_type(f"datasets.features.features.Array{number}DExtensionType")
for name in [name for name in sys.modules if name.partition(".")[0] in ("datasets", "huggingface_hub")]:
    del sys.modules[name]
"""


def run_with_hub(program, *arguments, address, home, **variables):
    """Runs a program in a process of its own, with the hub at an address and its cache in a folder."""
    env = {key: v for key, v in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_", "CODEC_BENCH_"))}
    folder = home.parent
    (folder / "program.py").write_text(program, "utf-8")
    (folder / "first.py").write_text(WITHOUT_LIBRARIES, "utf-8")
    env |= {"HF_ENDPOINT": address, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    env |= {forked.FIRST: str(folder / "first.py"), **variables}
    command = [sys.executable, str(folder / "program.py"), *arguments]
    return pool.subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
