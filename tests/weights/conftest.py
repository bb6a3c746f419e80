"""A local server with checkpoints: plain files, a Hugging Face hub and a ModelScope, each able to misbehave."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from importlib import import_module
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from local_http import Connection, LocalServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Served:
    """One file: its content, where the connection breaks (once each), and what the server does not do."""

    content: bytes
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    length: bool = True
    etag: str | None = '"v1"'
    kind: str = "application/octet-stream"
    status: int = 200
    commit: str = COMMIT


@dataclass
class Request:
    method: str
    path: str
    range: str | None
    headers: dict[str, str]
    sent: int = 0


class Server:
    """Files and answers by path; every request is kept."""

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.requests: list[Request] = []
        self._http = LocalServer(type("Handler", (_Handler,), {"server_of": self}))
        self.url, self.close = self._http.url, self._http.close

    def sent(self, path: str) -> list[int]:
        """Bytes of content that each GET of a path was sent."""
        return [r.sent for r in self.requests if r.method == "GET" and r.path == path]

    def add_hub(self, repo: str, files: dict[str, bytes], *, lfs: set[str], commit: str = COMMIT) -> None:
        """A repository as the hub's interface shows it."""
        for revision in ("main", commit):
            info = {
                "_id": "1",
                "id": repo,
                "modelId": repo,
                "sha": commit,
                "siblings": [{"rfilename": p} for p in files],
            }
            self.answers[f"/api/models/{repo}/revision/{revision}"] = _json(info)
            tree = []
            for path, content in files.items():
                item = {"type": "file", "oid": git_id(content), "size": len(content), "path": path}
                if path in lfs:
                    item["lfs"] = {"oid": sha256(content), "size": len(content), "pointerSize": 134}
                tree.append(item)
                etag = sha256(content) if path in lfs else git_id(content)
                self.files[f"/{repo}/resolve/{revision}/{path}"] = Served(content, etag=f'"{etag}"', commit=commit)
            self.answers[f"/api/models/{repo}/tree/{revision}"] = _json(tree)
        self.answers[f"/api/models/{repo}"] = self.answers[f"/api/models/{repo}/revision/main"]

    def add_modelscope(self, repo: str, files: dict[str, bytes]) -> None:
        """A repository as ModelScope's interface shows it."""
        listed = [{"Path": p, "Size": len(c), "Sha256": sha256(c), "Type": "blob"} for p, c in files.items()]
        data = {"Code": 200, "Success": True, "Data": {"Files": [{"Path": "d", "Type": "tree", "Size": 0}, *listed]}}
        self.answers[f"/api/v1/models/{repo}/repo/files?Revision=master&Recursive=True"] = _json(data)
        for path, content in files.items():
            self.files[f"/api/v1/models/{repo}/repo?Revision=master&FilePath={path}"] = Served(content)


class _Handler(Connection):
    server_of: Server

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        split = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(split.query).items() if k in ("Revision", "FilePath", "Recursive", "id")}
        path = unquote(split.path) + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")
        request = Request(self.command, path, self.headers.get("Range"), dict(self.headers))
        self.server_of.requests.append(request)
        if path in self.server_of.answers:
            status, headers, content = self.server_of.answers[path]
            return self.send(status, content, headers)
        served = self.server_of.files.get(path)
        if served is None:
            return self.send(404, b"")
        if served.status != 200:
            return self.send(served.status, b"")
        begin, status = 0, 200
        condition = self.headers.get("If-Range")
        if served.ranges and request.range and (condition is None or condition == served.etag):
            begin, status = int(request.range.removeprefix("bytes=").rstrip("-").split("-")[0]), 206
            if begin >= len(served.content):
                return self.send(416, b"", {"Content-Range": f"bytes */{len(served.content)}"})
        self.send_response(status)
        self.send_header("Content-Type", served.kind)
        if served.etag:
            self.send_header("ETag", served.etag)
        if "/resolve/" in path:
            self.send_header("X-Repo-Commit", served.commit)
            self.send_header("X-Linked-Etag", served.etag)
            self.send_header("X-Linked-Size", str(len(served.content)))
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{len(served.content) - 1}/{len(served.content)}")
        if served.length:
            self.send_header("Content-Length", str(len(served.content) - begin))
        else:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return None
        cut = served.cuts.pop(0) if served.cuts else len(served.content)
        segment = served.content[begin : max(begin, cut)]
        request.sent = len(segment)  # before the client can see the end of it
        self.wfile.write(segment)
        if cut < len(served.content) or not served.length:
            self.close_connection = True
        return None


def _json(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture
def server():
    built = Server()
    yield built
    built.close()


@pytest.fixture
def content(rng):
    """Bytes that no other file has, longer than what is read at once."""
    return rng.integers(0, 256, 700_001, dtype="uint8").tobytes()


@pytest.fixture(autouse=True)
def _away_from_this_user(tmp_path, monkeypatch):
    """Keeps tests from reading or writing the machine's own files."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "modelscope"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    for name in (
        "CODEC_BENCH_WEIGHTS",
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
        "HF_TOKEN",
        "HF_ENDPOINT",
        "MODELSCOPE_DOMAIN",
        "MODELSCOPE_API_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def catalogue(monkeypatch):
    """A catalogue for the test. Calling it with the fields of an entry adds one."""
    from codec_bench.weights.catalogue import Checkpoint

    entries = {}

    def add(name, **fields):
        options = {"version": 1, "summary": "A test.", "licence": "MIT", **fields}
        entries[name] = Checkpoint.model_validate({"name": name, **options})
        return entries[name]

    for module in ("find", "verify", "fetch"):
        monkeypatch.setattr(import_module(f"codec_bench.weights.{module}"), "checkpoint", entries.__getitem__)
    monkeypatch.setattr("codec_bench.weights.checkpoint", entries.__getitem__)
    monkeypatch.setattr("codec_bench.weights.checkpoint_names", lambda: sorted(entries))
    return add


@pytest.fixture
def serve(server):
    """Puts a file on the server: `serve(path, content, cuts=[...], ...)`."""

    def add(path, content, **options):
        server.files[path] = Served(content, **options)
        return server.url + path

    return add


@pytest.fixture
def digest():
    """The function that gives the SHA-256 of bytes."""
    return sha256


@pytest.fixture
def states():
    """A function of a checkpoint's name: of each file the state, and what it was compared with."""
    from codec_bench.weights.verify import verify

    return lambda name: {each.path: (each.state, each.against) for each in verify(name)}


@pytest.fixture
def the_hub_is(monkeypatch):
    """A function that sets the hub's address. huggingface_hub reads HF_ENDPOINT only when it is imported."""

    def set_to(url):
        for module in ("fetch", "from_files", "from_hub", "placing"):
            monkeypatch.setattr(import_module(f"codec_bench.weights.{module}"), "hub_endpoint", lambda: url)

    return set_to


@pytest.fixture
def hub(server, content, the_hub_is, catalogue):
    """A repository `owner/model` on a local hub, and its entry."""
    the_hub_is(server.url)
    files = {"model.safetensors": content, "config.json": b'{"a": 1}', "README.md": b"hello"}
    server.add_hub("owner/model", files, lfs={"model.safetensors"})
    catalogue(
        "one",
        hub="owner/model",
        files=[{"path": "model.safetensors", "or": ["pytorch_model.bin"]}, {"path": "config.json"}],
    )
    return server


@pytest.fixture
def plain(server, serve, content, catalogue):
    """A file at a URL, and its entry."""
    url = serve("/release/net.pt", content)
    catalogue("net", files=[{"path": "net.pt", "url": url, "size": len(content), "sha256": sha256(content)}])
    return server
