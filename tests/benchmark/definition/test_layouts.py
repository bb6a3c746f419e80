"""MiniMax's files as rows."""

import miniature
import pytest

from codec_bench.benchmark.definition.layouts import COLUMNS, open_minimax
from codec_bench.errors import UserError


@pytest.fixture
def mirror(tmp_path):
    for language in ("thai", "english"):
        miniature.build(f"minimax-tts-{language}", tmp_path)
    return tmp_path


def test_sentences_have_their_speakers_prompt(mirror):
    table = open_minimax("hf:MiniMaxAI/TTS-Multilingual-Test-Set", language="thai", mirror=mirror)
    rows = dict(table)
    assert table.total == len(rows) == 5 and table.columns == COLUMNS
    first = rows["thai-001"]
    assert first["speaker"] == "thai_female" and first["text"] == miniature.SENTENCES["th"][0]
    assert first["prompt_text"] == miniature.SENTENCES["th"][0]
    assert rows["thai-002"]["prompt_text"] == miniature.SENTENCES["th"][1]
    assert first["audio"].read().duration_s == pytest.approx(0.5, abs=0.1)  # MP3 pads to whole frames
    # The row of a speaker without a recording stays.
    assert rows["thai-005"]["audio"] is None and rows["thai-005"]["prompt_text"] is None


def test_a_folder_and_a_part_of_the_rows(mirror):
    folder = str(mirror / "MiniMaxAI" / "TTS-Multilingual-Test-Set")
    keys = [key for key, _ in open_minimax(folder, language="english")]
    assert [key for key, _ in open_minimax(folder, language="english", limit=2)] == keys[:2]
    drawn = [key for key, _ in open_minimax(folder, language="english", limit=3, seed=1)]
    assert drawn == [key for key, _ in open_minimax(folder, language="english", limit=3, seed=1)] == sorted(drawn)
    # Which rows a limit chooses depends on their keys alone, so a larger part contains a smaller one.
    assert set(drawn) <= {key for key, _ in open_minimax(folder, language="english", limit=4, seed=1)}


def test_a_language_that_is_not_there_names_those_that_are(mirror):
    with pytest.raises(UserError, match=r"no text/welsh.txt.*english, thai"):
        open_minimax("hf:MiniMaxAI/TTS-Multilingual-Test-Set", language="welsh", mirror=mirror)
    with pytest.raises(UserError, match="there is no folder"):
        open_minimax(str(mirror / "nowhere"), language="welsh")
