"""Pairs of sounds in folders as rows."""

import numpy as np
import soundfile
from refusals import Containing, refuses

from codec_bench.benchmark import load_benchmark
from codec_bench.data.layouts.benchmark_files import repository_of
from codec_bench.data.layouts.benchmark_pairs import open_story_cloze, open_zerospeech
from codec_bench.data.streamed import ProblemRow


def sounds(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        soundfile.write(folder / name, np.zeros(160), 16_000)


def test_a_story_that_lacks_an_end_is_a_row_with_a_problem(tmp_path):
    sounds(
        tmp_path / "tSC",
        "2_b_correct.wav",
        "3_b_incorrect.wav",
        "10_a_correct.wav",
        "0_c_x_correct.wav",
        "1_c_x_incorrect.wav",
        "notes.wav",
    )
    rows = dict(open_story_cloze(repository_of(str(tmp_path), None, None), subset="tSC"))
    assert list(rows) == ["tSC/c_x", "tSC/b", "tSC/a"]  # in the order of the numbers
    assert rows["tSC/b"]["audio"].source.endswith("2_b_correct.wav")
    assert rows["tSC/b"]["other_audio"].source.endswith("3_b_incorrect.wav")
    assert isinstance(rows["tSC/a"], ProblemRow)
    with refuses("no_subset_folder", subset="sSC"):
        open_story_cloze(repository_of(str(tmp_path), None, None), subset="sSC")
    sounds(tmp_path / "sSC", "a.wav")
    with refuses("no_story_sounds", subset="sSC"):
        open_story_cloze(repository_of(str(tmp_path), None, None), subset="sSC")


def test_a_pair_that_is_not_whole_is_a_row_with_a_problem(tmp_path):
    sounds(tmp_path / "lexical" / "dev", "a.wav", "b.wav", "c.wav", "d.wav")
    table = tmp_path / "lexical" / "dev" / "gold.csv"
    table.write_text("id,filename,voice,correct\n1,a,B,1\n1,b,B,0\n1,c,D,1\n2,d.wav,B,1\n2,missing,B,0\n")
    rows = dict(open_zerospeech(repository_of(str(tmp_path), None, None), subset="lexical/dev"))
    assert list(rows) == ["lexical/dev/B/1", "lexical/dev/D/1", "lexical/dev/B/2"]
    assert rows["lexical/dev/B/1"]["band"] is None  # the table does not say how often a word occurs
    assert isinstance(rows["lexical/dev/D/1"], ProblemRow)
    assert rows["lexical/dev/B/2"]["other_audio"] == "lexical/dev/missing.wav"
    table.write_text("id,filename,voice\n1,a,B\n")
    with refuses("table_lacks_column", columns="correct"):
        open_zerospeech(repository_of(str(tmp_path), None, None), subset="lexical/dev")
    with refuses("no_file"):
        open_zerospeech(repository_of(str(tmp_path), None, None), subset="lexical/test")


def test_data_that_are_on_no_hub_state_how_they_are_had(tmp_path, monkeypatch):
    monkeypatch.delenv("CODEC_BENCH_DATA", raising=False)
    with refuses("data_not_obtained", folder="") as raised:
        load_benchmark("swuggy").questions()
    assert "zrc datasets:pull sLM21" in raised.value.hint
    with refuses("data_not_obtained", folder=Containing(tmp_path)):
        load_benchmark("swuggy").questions(mirror=tmp_path)
    # How they are had changes no answer.
    assert "obtain" not in load_benchmark("swuggy").request_facts["data"]
