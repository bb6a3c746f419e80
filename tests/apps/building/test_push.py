"""Pushing a data set to the hub: what arrives there, what is refused before, and what the hub's refusals read like."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench import build

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
    with refuses("repository_is_public"):
        build(mixing(count=1, licence="MIT"), push="me/open", **requests)
    assert not hub.repositories["me/open"]["files"]
    with refuses("private_without_push"):
        build(mixing(count=1, licence="MIT"), **requests)


@pytest.mark.parametrize(
    ("push", "changed", "message"),
    [
        ("set", {"licence": "MIT"}, {"code": "repository_form", "name": "set"}),
        ("me/set", {}, {"code": "recipe_without_licence"}),
        ("me/set", {"licence": "unknown"}, {"code": "recipe_without_licence"}),
        ("me/set", {"licence": "MIT", "second": {"data": "music", "is_what": "it", "licences": "not known"}},
            {"code": "source_licence_unnamed", "count": 3, "source": "music"}),
    ],
    ids=["no owner", "no licence", "licence not known", "source"],
)  # fmt: skip
def test_what_cannot_be_passed_on_is_refused_before_anything_is_built(hub, mixing, sounds, push, changed, message):
    with refuses(**message):
        build(mixing(count=1, **changed), out=sounds / "out", push=push)
    assert not (sounds / "out").exists() and not hub.repositories


def test_a_token_that_is_missing_or_not_enough_is_reported_in_one_sentence(hub, mixing, sounds, monkeypatch):
    recipe = mixing(count=1, licence="MIT")
    with refuses("push_forbidden", name="someone-else/set", cause="403"):
        build(recipe, out=sounds / "out", push="someone-else/set")
    hub.broken = True
    with refuses("push_refused", cause="500"):
        build(recipe, out=sounds / "out", push="me/set")
    hub.broken = False
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with refuses("push_forbidden", cause="401") as refused:
        build(recipe, out=sounds / "out", push="me/set")
    assert "hf_wrong" not in str(refused.value) and not hub.repositories
    monkeypatch.delenv("HF_TOKEN")
    with refuses("no_hub_token") as refused:
        build(recipe, out=sounds / "other", push="me/set")
    assert "HF_TOKEN" in str(refused.value) and not (sounds / "other").exists()


def test_nothing_is_pushed_where_nothing_is_stored(hub, mixing, sounds):
    nothing = {"louder": {"wordings": ["Which is louder?"], "least": 50}}
    built = build(mixing(count=1, retries=0, questions=nothing, licence="MIT"), out=sounds / "out", push="me/set")
    assert built.pushed is None and not hub.repositories
