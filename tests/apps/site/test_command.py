"""`codec-bench site` on the command line: what it prints, and how it ends."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from refusals import refuses

from codec_bench.apps.site.command import site
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score


def test_a_site_is_built(cli, tmp_path):
    writer = RunWriter(tmp_path / "run", {})
    writer.begin({"g722": {}}, {"stoi": {"protocol": "s", "higher_is_better": True}}, [Sample("a", None)])
    writer.write([(0, ItemRecord("g722", "a", "ok", None, {"stoi": Score.ok(0.9, "s")}))])
    writer.set_meta(state="finished", config={"command": "evaluate"}, data={"name": "made"})
    writer.close()
    code, out, err = cli("site", "run", "--out", "pages", "--title", "Ours")
    assert (code, out) == (0, "pages/index.html\n"), err
    assert "runs: 1 added, 0 replaced, 0 left as they are" in err
    assert (tmp_path / "pages" / "index.html").is_file()
    code, out, err = cli("site", "nothing", "--out", "pages")
    assert (code, out) == (2, "") and "'nothing' is not a run folder and holds none" in err


def test_contradictions_end_with_3(monkeypatch, capsys):
    from codec_bench.apps.site.contradictions import Contradiction

    result = Contradiction(
        "g722",
        "stoi",
        "stoi/pystoi-0.4",
        "voices",
        "a" * 12,
        "b" * 12,
        "old",
        "new\x1b[2J",
        0.9,
        0.5,
        (0.88, 0.92),
        (0.48, 0.52),
        ("pystoi 0.3 to 0.4",),
    )
    monkeypatch.setattr("codec_bench.apps.site.api.contradictions", lambda runs: [result])
    with pytest.raises(BaseException) as ended:
        site(["run"], check=True)
    assert getattr(ended.value, "exit_code", None) == 3
    out = capsys.readouterr().out
    assert "old: 0.9 [0.88, 0.92]" in out and "pystoi 0.3 to 0.4" in out and "\x1b" not in out


def test_messages_while_a_site_is_built_names_few(monkeypatch, capsys, tmp_path):
    one = SimpleNamespace(
        run_a="old", run_b="new", metric="stoi", system="g722", board="voices", value_a=0.9, value_b=0.5
    )
    built = SimpleNamespace(folder=tmp_path, added=("x",), replaced=(), unchanged=(), contradictions=(one,) * 5)
    monkeypatch.setattr("codec_bench.apps.site.api.site", lambda *inputs, **options: built)
    site(["run"], out=tmp_path)
    messages = capsys.readouterr()
    assert messages.err.count("contradict each other") == 3 and "2 more contradictions" in messages.err
    assert messages.out == f"{tmp_path / 'index.html'}\n"
    with refuses("no_site_folder"):
        site(["run"], out=None)
