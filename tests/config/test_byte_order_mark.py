"""Files that an editor wrote with a byte order mark read as those without it."""

from __future__ import annotations

import json

import pytest

from codec_bench.apps.agreement.ratings import read_ratings
from codec_bench.apps.conversation.full_duplex import read_chunks
from codec_bench.config import load_yaml
from codec_bench.data import Source, open_source, with_trials
from codec_bench.store.imported import read_versa
from codec_bench.types import Sample


def _rows(path):
    return [(sample.id, sample.text) for sample in open_source(str(path))]


READERS = {
    "yaml": ("a.yaml", "version: 1\n", load_yaml),
    "jsonl": ("a.jsonl", '{"id": "x", "audio": "x.wav", "text": "words"}\n', _rows),
    "csv": ("a.csv", "id,audio,text\nx,x.wav,words\n", _rows),
    "tsv": ("a.tsv", "id\taudio\ttext\nx\tx.wav\twords\n", _rows),
    "ratings": ("r.csv", "id,rater,score\nq,ann,3\n", lambda path: read_ratings(path, scale=(0, 5)).rows),
    "chunks": ("c.json", json.dumps({"chunks": [{"text": "x", "timestamp": [0, 1]}]}), read_chunks),
    "versa": ("v.jsonl", '{"key": "x", "utmos": 3.5}\n', lambda path: read_versa(path).metrics),
    "trials": (
        "t.txt", "1 a b\n",
        lambda path: [s.extra for s in with_trials(Source("p", [Sample("a", "a.wav"), Sample("b", "b.wav")]), path)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", READERS)
def test_a_byte_order_mark_is_dropped(tmp_path, kind):
    name, text, read = READERS[kind]
    (tmp_path / "x.wav").touch()
    path = tmp_path / name
    path.write_text(text, "utf-8")
    plain = read(path)
    path.unlink()
    path.write_text(text, "utf-8-sig")
    assert plain and read(path) == plain
