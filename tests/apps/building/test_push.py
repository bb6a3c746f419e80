"""Pushing a data set to the hub: what arrives there, what is refused before, and what the hub's refusals read like."""

from __future__ import annotations

import pytest

from codec_bench import build
from codec_bench.messages.errors import UserError

from .hub import TOKEN, Hub

SENT = {"README.md", "benchmark.yaml", "build.html", "data/test-00000-of-00001.parquet", "dropped.jsonl", "funnel.json"}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on this machine, at which the user has a token.

    Large files take the path over LFS, which hubs of any age have.
    """
    constants = pytest.importorskip("huggingface_hub.constants")
    server = Hub()
    for name, value in {
        "ENDPOINT": server.url,
        "HF_HUB_DISABLE_XET": True,
        "HF_TOKEN_PATH": str(tmp_path / "none"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    for name in ("HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield server
    server.close()


def test_what_was_built_is_what_the_hub_has(hub, mixing, sounds):
    hub.add(
        "me/set", {"data/test-00000-of-00007.parquet": b"of a longer build", "notes.md": b"kept", ".gitattributes": b""}
    )
    messages = []
    built = build(mixing(count=2, licence="CC BY 4.0"), out=sounds / "out", push="me/set", notify=messages.append)
    assert built.pushed == f"{hub.url}/datasets/me/set" and any("me/set" in line for line in messages)
    files = hub.repositories["me/set"]["files"]
    assert set(files) == SENT | {"notes.md", ".gitattributes"}, (
        "neither the record of the build nor an old table is there"
    )
    for name in SENT:
        assert files[name] == (built.folder / name).read_bytes(), name
    assert hub.commits == ["Built by codec-bench"] and not hub.repositories["me/set"]["private"]


def test_a_private_data_set_is_private(hub, mixing, sounds):
    requests = {"out": sounds / "out", "private": True}
    build(mixing(count=1, licence="MIT"), push="me/new", **requests)
    assert hub.repositories["me/new"]["private"] and SENT <= set(hub.repositories["me/new"]["files"])
    hub.add("me/open", {})
    with pytest.raises(UserError, match="exists already and is public"):
        build(mixing(count=1, licence="MIT"), push="me/open", **requests)
    assert not hub.repositories["me/open"]["files"]
    with pytest.raises(UserError, match="none is pushed"):
        build(mixing(count=1, licence="MIT"), **requests)


@pytest.mark.parametrize(
    ("push", "changed", "message"),
    [
        ("set", {"licence": "MIT"}, "'set' is no name of a repository"),
        ("me/set", {}, "does not name the licence under which"),
        ("me/set", {"licence": "unknown"}, "does not name the licence under which"),
        ("me/set", {"licence": "MIT", "second": {"data": "music", "is_what": "it", "licences": "not known"}},
            r"the licence of 3 records of 'music' is not named"),
    ],
    ids=["no owner", "no licence", "licence not known", "source"],
)  # fmt: skip
def test_what_cannot_be_passed_on_is_refused_before_anything_is_built(hub, mixing, sounds, push, changed, message):
    with pytest.raises(UserError, match=message):
        build(mixing(count=1, **changed), out=sounds / "out", push=push)
    assert not (sounds / "out").exists() and not hub.repositories


def test_a_token_that_is_missing_or_not_enough_is_reported_in_one_sentence(hub, mixing, sounds, monkeypatch):
    recipe = mixing(count=1, licence="MIT")
    with pytest.raises(
        UserError, match=r"does not let this token write the data set 'someone-else/set': it answered 403"
    ):
        build(recipe, out=sounds / "out", push="someone-else/set")
    hub.broken = True
    with pytest.raises(UserError, match=r"could not be pushed: .* answered 500"):
        build(recipe, out=sounds / "out", push="me/set")
    hub.broken = False
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(UserError, match="it answered 401") as refused:
        build(recipe, out=sounds / "out", push="me/set")
    assert "hf_wrong" not in str(refused.value) and not hub.repositories
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UserError, match="there is no token") as refused:
        build(recipe, out=sounds / "other", push="me/set")
    assert "HF_TOKEN" in str(refused.value) and not (sounds / "other").exists()


def test_nothing_is_pushed_where_nothing_is_stored(hub, mixing, sounds):
    nothing = {"louder": {"wordings": ["Which is louder?"], "least": 50}}
    built = build(mixing(count=1, retries=0, questions=nothing, licence="MIT"), out=sounds / "out", push="me/set")
    assert built.pushed is None and not hub.repositories
