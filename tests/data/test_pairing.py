"""Generated audio is matched with its sample. A file that could belong to several samples is not matched."""

from __future__ import annotations

import json
import os
import unicodedata

import pytest
from refusals import Containing, refuses

from codec_bench.data import match_estimates, open_source
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.types import Sample


@pytest.fixture
def build(tmp_path):
    """Makes empty files below `generated` and gives the folder."""

    def make(*names):
        for name in names:
            path = tmp_path / "generated" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
        return tmp_path / "generated"

    return make


def pairs(source):
    return {s.id: s.estimate and os.path.basename(s.estimate) for s in source}


def samples(**audio):
    return open_source([Sample(id.replace("_of_", "/"), path, text="t") for id, path in audio.items()])


def test_by_id_then_by_stem(build):
    source = samples(a="ref/a.wav", speaker_of_b="ref/1.wav", c="ref/clip_c.flac", d="d.wav")
    paired = match_estimates(source, build("a.wav", "b.mp3", "clip_c.wav", "later.wav"))
    assert pairs(paired) == {"a": "a.wav", "speaker/b": "b.mp3", "c": "clip_c.wav", "d": None}
    assert paired.problems == {"d": Diagnostic("no_generated_audio")}
    assert paired.unmatched == ("later",)
    assert [s.audio for s in paired][:3] == [s.audio for s in source][:3], "the reference stays"


def test_ids_count_before_stems(build):
    source = samples(x="other.wav", other="x.wav")
    assert pairs(match_estimates(source, build("x.wav", "other.wav"))) == {"x": "x.wav", "other": "other.wav"}


def test_what_could_be_two_is_neither(build):
    source = samples(s1_of_a="1.wav", s2_of_a="2.wav", b="b.wav", c="c.wav")
    paired = match_estimates(source, build("a.wav", "u/b.wav", "v/b.wav", "c.wav"))
    assert pairs(paired) == {"s1/a": None, "s2/a": None, "b": None, "c": "c.wav"}
    assert paired.problems["s1/a"] == Diagnostic("several_samples", file="a", samples=["s1/a", "s2/a"])
    assert paired.problems["b"] == Diagnostic("several_generated", files=["u/b", "v/b"])
    assert paired.unmatched == ("a", "u/b", "v/b")
    with refuses("no_file_belongs", samples=1, reason=Containing("the generated files 'u/b' and 'v/b' could both")):
        match_estimates(samples(b="b.wav"), build("u/b.wav", "v/b.wav"))


def test_dots_in_ids(build):
    source = samples(**{"utt.1": "r.wav", "utt.2": "q.wav"})
    assert pairs(match_estimates(source, build("utt.1.wav", "utt.2.wav"))) == {
        "utt.1": "utt.1.wav",
        "utt.2": "utt.2.wav",
    }


def test_files_and_samples_that_are_not_named_are_counted(build):
    source = samples(**{f"s{k}": f"{k}.wav" for k in range(4)})
    with pytest.raises(UserError) as refused:
        match_estimates(source, build(*(f"x{k}.wav" for k in range(5))))
    assert refused.value.hint.endswith(
        "the files are 'x0', 'x1', 'x2' and 2 more, the samples 's0', 's1', 's2' and 1 more"
    )


@pytest.mark.parametrize("column", ["estimate", "generated", "audio", "wav"])
def test_a_manifest_of_generated_audio(tmp_path, build, column):
    build("one.wav", "two.wav")
    manifest = tmp_path / "tts.jsonl"
    rows = [{"id": "a", column: "generated/one.wav"}, {"id": "b", column: "generated/two.wav"}]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = samples(b="1.wav", a="2.wav")
    assert pairs(match_estimates(source, manifest)) == {"a": "one.wav", "b": "two.wav"}


def test_texts_without_reference_audio(tmp_path, build):
    (tmp_path / "texts.csv").write_text("id,text\na,hello\nb,world\n")
    paired = match_estimates(open_source(tmp_path / "texts.csv", require_audio=False), build("a.wav", "b.wav"))
    assert [(s.id, s.audio, s.text, os.path.basename(s.estimate)) for s in paired] == [
        ("a", None, "hello", "a.wav"), ("b", None, "world", "b.wav"),
    ]  # fmt: skip
    assert not paired.problems


def test_files_of_samples_that_a_limit_excluded_are_not_called_unmatched(build):
    source = samples(a="a.wav", b="b.wav", c="c.wav")
    folder = build("a.wav", "b.wav", "c.wav")
    for limited in (open_source(source, limit=2), open_source(source, limit=2, seed=4)):
        paired = match_estimates(limited, folder)
        assert len(paired) == 2 and not paired.problems and paired.unmatched == ()
    assert match_estimates(open_source(source, limit=4), build("d.wav")).unmatched == ("d",)


def test_a_problem_stays_one_and_its_file_is_not_left_over(tmp_path, build):
    (tmp_path / "m.jsonl").write_text('{"id": "a", "audio": "a.wav"}\n{"id": "b"}\n')
    paired = match_estimates(open_source(tmp_path / "m.jsonl"), build("a.wav", "b.wav"))
    assert list(paired.problems) == ["b"] and "has no audio" in paired.problems["b"]
    assert paired.unmatched == ()


def test_nothing_in_common_is_an_error_that_shows_both_sides(build):
    with refuses("no_file_belongs", files=1, samples=2, hint="the files are 'zzz', the samples 'a', 'b'"):
        match_estimates(samples(a="a.wav", b="b.wav"), build("zzz.wav"))


def test_the_fingerprint_knows_the_generated_audio(build):
    source = samples(a="a.wav")
    folder = build("a.wav")
    first = match_estimates(source, folder).fingerprint
    assert first != source.fingerprint
    (folder / "a.wav").write_bytes(b"longer")
    assert match_estimates(source, folder).fingerprint != first


def test_accents_may_be_composed_or_not(build):
    composed, apart = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
    texts = [Sample(id, None, text="t") for id in (f"a{composed}", f"b{apart}", "plain")]
    source = open_source(texts, require_audio=False)
    paired = match_estimates(source, build(f"a{apart}.wav", f"b{composed}.wav", "plain.wav"))
    assert list(pairs(paired).values()) == [f"a{apart}.wav", f"b{composed}.wav", "plain.wav"] and not paired.unmatched
    both = open_source([Sample(id, None, text="t") for id in (composed, apart)], require_audio=False)
    assert list(pairs(match_estimates(both, build(f"{apart}.wav"))).values()) == [None, f"{apart}.wav"]
