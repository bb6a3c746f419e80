"""A stand-in for the hub's endpoints that huggingface_hub calls when a data set is pushed: repositories in memory, one
token that may write.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re

from local_http import Connection, LocalServer

TOKEN = "hf_of_the_test"


class Hub(LocalServer):
    """The hub. `repositories` holds, by OWNER/NAME, whether each is private and its files; `commits` the messages."""

    def __init__(self):
        self.repositories, self.blobs, self.commits = {}, {}, []
        self.broken = False
        super().__init__(_Answers)

    def add(self, name, files, private=False):
        self.repositories[name] = {"private": private, "files": dict(files)}


class _Answers(Connection):
    def do_GET(self):
        self.answer()

    do_POST = do_PUT = do_GET

    def answer(self):
        body, path = self.body(), self.path.partition("?")[0]
        if path.startswith("/lfs/"):
            oid = path.removeprefix("/lfs/")
            assert hashlib.sha256(body).hexdigest() == oid
            self.server.blobs[oid] = body
            return self.send(200, b"")
        if self.server.broken:
            return self.send_json(500, {"error": "out of order"})
        if path != "/api/validate-yaml" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.send_json(401, {"error": "Invalid username or password."})
        for pattern, call in _ROUTES.items():
            if result := re.fullmatch(pattern, f"{self.command} {path}"):
                return call(self, *result.groups(), body)
        return self.send_json(404, {"error": f"no route {self.command} {path}"})

    def create(self, body):
        requests = json.loads(body)
        name = f"{requests['organization']}/{requests['name']}"
        assert requests["type"] == "dataset"
        if requests["organization"] == "someone-else":
            return self.send_json(403, {"error": "You don't have the rights to create a dataset under this namespace"})
        url = f"{self.server.url}/datasets/{name}"
        if name in self.server.repositories:
            return self.send_json(409, {"error": "You already created this dataset repo", "url": url})
        self.server.add(name, {}, requests.get("visibility") == "private")
        return self.send_json(200, {"url": url, "name": name})

    def validate(self, body):
        assert json.loads(body)["repoType"] == "dataset"
        return self.send_json(200, {"errors": [], "warnings": []})

    def info(self, name, body):
        held = self.server.repositories[name]
        return self.send_json(200, {"id": name, "private": held["private"], "sha": "0" * 40, "siblings": []})

    def tree(self, name, body):
        files = self.server.repositories[name]["files"]
        return self.send_json(
            200, [{"type": "file", "path": p, "size": len(c), "oid": "0" * 40} for p, c in files.items()]
        )

    def modes(self, name, body):
        files = json.loads(body)["files"]
        large = [one["path"].endswith(".parquet") for one in files]
        messages = [
            {"path": one["path"], "uploadMode": "lfs" if is_large else "regular", "shouldIgnore": False}
            for one, is_large in zip(files, large)
        ]
        return self.send_json(200, {"files": messages})

    def batch(self, name, body):
        objects = [
            {**one, "actions": {"upload": {"href": f"{self.server.url}/lfs/{one['oid']}", "header": {}}}}
            for one in json.loads(body)["objects"]
        ]
        return self.send_json(200, {"transfer": "basic", "objects": objects})

    def commit(self, name, body):
        files = self.server.repositories[name]["files"]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            match line["key"]:
                case "header":
                    self.server.commits.append(value["summary"])
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    files[value["path"]] = self.server.blobs[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
        url = f"{self.server.url}/datasets/{name}/commit/{'1' * 40}"
        return self.send_json(200, {"success": True, "commitUrl": url, "commitOid": "1" * 40})


_ROUTES = {
    "POST /api/repos/create": _Answers.create,
    "POST /api/validate-yaml": _Answers.validate,
    "GET /api/datasets/([^/]+/[^/]+)": _Answers.info,
    "GET /api/datasets/([^/]+/[^/]+)/tree/main": _Answers.tree,
    "POST /api/datasets/([^/]+/[^/]+)/preupload/main": _Answers.modes,
    "POST /datasets/([^/]+/[^/]+).git/info/lfs/objects/batch": _Answers.batch,
    "POST /api/datasets/([^/]+/[^/]+)/commit/main": _Answers.commit,
}
