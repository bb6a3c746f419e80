"""MiniMax's and AIR-Bench's files as rows."""

import json
from pathlib import Path

import miniature
import pyarrow.parquet as pq
import pytest
from refusals import Containing, refuses

from codec_bench.benchmark import benchmark_names, load_benchmark
from codec_bench.data.layouts.benchmark_files import (
    COLUMNS,
    open_air_bench,
    open_listed,
    open_minimax,
    open_tagged,
    open_transcribed,
    repository_of,
)
from codec_bench.data.table import row_problem
from codec_bench.messages import Diagnostic
from codec_bench.models.base import ModelInfo


@pytest.fixture
def mirror(tmp_path):
    for language in ("thai", "english"):
        miniature.build(f"minimax-tts-{language}", tmp_path)
    return tmp_path


def test_sentences_have_their_speakers_prompt(mirror):
    table = open_minimax(repository_of("hf:MiniMaxAI/TTS-Multilingual-Test-Set", None, mirror), language="thai")
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
    position = repository_of(str(mirror / "MiniMaxAI" / "TTS-Multilingual-Test-Set"), None, None)
    table = open_minimax(position, language="english")
    keys = [key for key, _ in table]
    assert [key for key, _ in table.select(2, None)] == keys[:2] and table.select(None, 1) is table
    drawn = [key for key, _ in table.select(3, 1)]
    assert drawn == [key for key, _ in open_minimax(position, language="english").select(3, 1)] == sorted(drawn)
    # Which rows a limit chooses depends on their keys alone, so a larger part contains a smaller one.
    assert set(drawn) <= {key for key, _ in table.select(4, 1)}


def test_a_language_that_is_not_there_names_those_that_are(mirror):
    with refuses("no_sentences", file="text/welsh.txt", hint="english, thai"):
        open_minimax(repository_of("hf:MiniMaxAI/TTS-Multilingual-Test-Set", None, mirror), language="welsh")
    with refuses("no_folder"):
        repository_of(str(mirror / "nowhere"), None, None)


AIR_BENCH = "hf:qyang1021/AIR-Bench-Dataset"


@pytest.fixture
def air_bench(tmp_path):
    """AIR-Bench's two parts in small, with the list of questions for changing."""
    for name in ("air-bench-audio-grounding", "air-bench-chat"):
        miniature.build(name, tmp_path)
    listed = tmp_path / "qyang1021" / "AIR-Bench-Dataset" / "Foundation" / "Foundation_meta.json"
    return tmp_path, listed, json.loads(listed.read_text())


def test_every_task_and_source_of_air_bench_is_read(air_bench):
    mirror, _, records = air_bench
    tasks = {(row["task_name"], row["dataset_name"]) for row in records}
    assert len({task for task, _ in tasks}) == 19 and len(tasks) == 25
    table = open_air_bench(repository_of(AIR_BENCH, None, mirror), track="Foundation", keep=lambda row: True)
    rows = list(table)
    assert table.total == len(rows) == len(records) == 25 * miniature.ROWS
    assert [key for key, _ in rows[:2]] == ["Foundation/0", "Foundation/1"]
    missing = [row["audio"] for _, row in rows if isinstance(row["audio"], str)]
    assert len(missing) == 25 and missing[0] == f"Foundation/{'_'.join(sorted(tasks)[0])}/4.wav"
    renamed = [row["task_name"] for _, row in rows if row["renamed"]]
    assert set(renamed) == {"Audio_Grounding"} and len(renamed) == miniature.ROWS - 1
    chat = open_air_bench(repository_of(AIR_BENCH, None, mirror), track="Chat", keep=lambda row: True)
    assert chat.total == 8 * miniature.ROWS and "meta_info" in chat.columns


def test_entries_take_their_task_and_source_and_two_options_where_there_are_two(air_bench):
    mirror, *_ = air_bench

    def questions(name, **more):
        return list(load_benchmark(name).questions(mirror=mirror, **more))

    assert len(questions("air-bench-speaker-gender-recognition")) == 2 * miniature.ROWS
    meld = questions("air-bench-speaker-gender-recognition-meld")
    assert [q.fields["choices"] for q in meld] == [list(miniature.OPTIONS[:2])] * miniature.ROWS
    assert {q.fields["dataset"] for q in meld} == {"meld"} and {q.subsets["dataset"] for q in meld} == {"meld"}
    # A limit takes a part of the task and not of the whole list, and a larger part holds a smaller one.
    small, more = (
        {q.id for q in questions("air-bench-audio-grounding", limit=limit, seed=1)} for limit in (2, miniature.ROWS - 1)
    )
    assert len(small) == 2 and small < more < {q.id for q in questions("air-bench-audio-grounding")}
    groups = {(q.fields["task"], q.subsets["group"]) for q in questions("air-bench-chat")}
    assert groups == {
        ("speech_QA", "speech"), ("speech_dialogue_QA", "speech"), ("sound_QA", "sound"),
        ("sound_generation_QA", "sound"), ("music_QA", "music"), ("music_generation_analysis_QA", "music"),
        ("speech_and_sound_QA", "speech_and_sound"), ("speech_and_music_QA", "speech_and_music"),
    }  # fmt: skip


def test_what_is_wrong_in_the_list_of_air_bench_is_counted_or_reported(air_bench):
    mirror, listed, records = air_bench
    records[:6] = [
        "no object",
        {**records[1], "task_name": None},
        {**records[2], "path": "../../../../etc/passwd"},
        {**records[3], "path": None},
        *records[4:6],
    ]
    listed.write_text(json.dumps(records))
    task = records[4]["task_name"]
    name = next(
        name
        for name in benchmark_names()
        if (one := load_benchmark(name)).data.layout == "air-bench" and one.data.where == {"task": task}
    )
    others = [
        of for at, of in sorted({(row["task_name"], row["dataset_name"]) for row in records[6:]}) if at == task
    ]  # the other source of the task lacks a sound too
    questions = list(load_benchmark(name).questions(mirror=mirror))
    problems = [q.problem for q in questions if q.problem]
    # Rows that do not say what they belong to are counted wherever they might belong.
    assert problems == [
        "a question of Foundation/Foundation_meta.json is no object",
        "a question of Foundation/Foundation_meta.json has no task_name",
        "the audio '../../../../etc/passwd' is outside the folder of its track",
        "the row has no sound in 'audio'",
        "the row has no sound in 'audio': there is no sound file "
        f"'Foundation/{task}_{records[4]['dataset_name']}/4.wav'",
    ] + [f"the row has no sound in 'audio': there is no sound file 'Foundation/{task}_{of}/4.wav'" for of in others]
    for row in records[1:]:
        row["frage"] = row.pop("question", None)
    listed.write_text(json.dumps(records[6:]))
    with refuses(
        "benchmark_column_missing",
        name="air-bench-sound-aqa",
        field="question",
        column="question",
        data="qyang1021/AIR-Bench-Dataset",
        hint=".data.columns.question=COLUMN",
    ):
        load_benchmark("air-bench-sound-aqa").questions(mirror=mirror)
    for text in ("{}", "[", ""):
        listed.write_text(text)
        with refuses("no_list_of_questions|questions_unreadable", listed=Containing("Foundation_meta.json")):
            load_benchmark("air-bench-sound-aqa").questions(mirror=mirror)


def test_objects_of_a_json_file_have_their_sounds_and_a_conversation_its_turns(tmp_path):
    miniature.build("vocalbench-multi-round", tmp_path)
    one = load_benchmark("vocalbench-multi-round")
    questions = list(one.questions(mirror=tmp_path))
    assert [question.problem is None for question in questions] == [
        at != miniature.NO_SOUND for at in range(miniature.ROWS)
    ]
    turns = [
        [turn.role for turn in one.prompt_for(ModelInfo("m", reads="messages")).render(q).messages]
        for q in questions[:3]
    ]
    assert turns == [["user", "assistant"] * before + ["user"] for before in (1, 2, 3)]
    listed = tmp_path / "VocalNet" / "VocalBench" / "json" / "multi_round.json"
    where = {"listed": "json/multi_round.json", "folder": "audio", "sounds": ("Audio",), "keep": lambda row: True}
    listed.write_text(json.dumps([7, {"Audio": "part/1.wav"}, {"Audio": None}]))
    table = open_listed(repository_of("hf:VocalNet/VocalBench", None, tmp_path), **where)
    bad, good, silent = (row for _, row in table)
    assert "entry 0 of json/multi_round.json is no object" in bad.problem
    assert good["Audio"].read().duration_s > 0 and silent["Audio"] is None
    for text in ('{"a": 1}', "no JSON"):
        listed.write_text(text)
        with refuses(
            "no_list_of_questions|questions_unreadable", listed="json/multi_round.json", name="VocalNet/VocalBench"
        ):
            open_listed(repository_of("hf:VocalNet/VocalBench", None, tmp_path), **where)


def test_files_that_are_named_alike_are_read_as_one_list_with_their_names(tmp_path):
    miniature.build("speech-role-multi", tmp_path)
    path = tmp_path / "yuhui1038" / "SpeechRole"
    where = {"listed": "benchmark/test_data/multi_turn/*.json", "folder": "benchmark", "keep": lambda row: True}
    where |= {"sounds": ("dialogue.0.user_speech_path",)}
    stem = "benchmark/test_data/multi_turn"
    (path / stem / "Bad.json").write_text("[7]")
    rows = dict(open_listed(repository_of(str(path), None, None), **where))
    named = [f"Hamlet/{at}" for at in range(3)] + [f"Lin Daiyu/{at}" for at in range(miniature.ROWS - 3)]
    assert list(rows) == [f"{stem}/{one}" for one in ["Bad/0", *named]]
    assert rows[f"{stem}/Hamlet/0"]["file"] == "Hamlet" and rows[f"{stem}/Lin Daiyu/1"]["file"] == "Lin Daiyu"
    assert "entry 0 of benchmark/test_data/multi_turn/Bad.json is no object" in row_problem(rows[f"{stem}/Bad/0"])
    with refuses("no_files_of_pattern", pattern="benchmark/*.txt"):
        open_listed(repository_of(str(path), None, None), **where | {"listed": "benchmark/*.txt"})
    requests = [one for one in load_benchmark("speech-role-multi").questions(mirror=tmp_path) if one.problem is None]
    assert {len(one.fields["audio"]) for one in requests} == {2, 3, 4}
    assert [one.fields["character"] for one in requests[:2]] == ["Hamlet", "Hamlet"]


def test_rows_by_their_ids_name_their_sounds_and_the_answer_joins_the_wrong_choices(tmp_path):
    miniature.build("rul-muchomusic", tmp_path)
    questions = list(load_benchmark("rul-muchomusic").questions(mirror=tmp_path))
    assert [one.id for one in questions[:3]] == ["row-0", "row-1", "row-2"]
    assert [one.problem is None for one in questions] == [True] * 4 + [False, True]  # one has no sound, one no answer
    for one in questions[:4]:
        assert sorted(one.fields["choices"]) == sorted(miniature.OPTIONS) and one.audio.read().duration_s > 0
    orders = {tuple(one.fields["choices"]) for one in questions[:4]}
    assert len(orders) > 1  # the right answer is not always in one place
    again = list(load_benchmark("rul-muchomusic").questions(mirror=tmp_path, limit=2))
    assert [one.fields["choices"] for one in again] == [one.fields["choices"] for one in questions[:2]]
    assert "answer_among_choices" not in load_benchmark("mmar").request_facts["data"]


def test_tags_are_read_from_both_forms_of_table(tmp_path):
    for name in ("mtg-jamendo-genre", "magnatagatune"):
        miniature.build(name, tmp_path)
    jamendo, magna = (
        list(load_benchmark(name).questions(mirror=tmp_path)) for name in ("mtg-jamendo-genre", "magnatagatune")
    )
    assert [question.id for question in jamendo] == [f"track_{index}" for index in range(miniature.ROWS)]
    assert jamendo[0].references == ("60s, 80s",) and jamendo[0].speaker == "1080"
    assert jamendo[1].audio.read().duration_s == pytest.approx(0.5, abs=0.1)  # 01/1.low.mp3
    assert jamendo[4].problem == "the row has no sound in 'audio': there is no sound file '04/4.mp3'"
    # The seventh clip lies in a folder of the training part; tags beyond the top 50 are kept and left to the metric.
    assert len(magna) == miniature.ROWS and {one.fields["folder"] for one in magna} == {"d", "e", "f"}
    assert magna[0].references == ("guitar, slow, no piano",)


def test_what_is_wrong_in_a_table_of_tags_is_reported(tmp_path):
    where = {"listed": "tags.tsv", "folder": "audio", "sounds": ("PATH",), "keep": lambda row: True}
    with refuses("no_file"):
        open_tagged(repository_of(str(tmp_path), None, None), **where)
    for text in ("", "one column\n", "ID\tTAGS\n"):
        (tmp_path / "tags.tsv").write_text(text)
        with refuses("not_a_tab_table", known="PATH"):
            open_tagged(repository_of(str(tmp_path), None, None), **where)
    (tmp_path / "tags.tsv").write_text("ID\tPATH\tTAGS\n1\t../../etc/passwd\tx---rock\n2\n3\t1/3.mp3\n")
    rows = dict(open_tagged(repository_of(str(tmp_path), None, None), **where))
    assert list(rows) == ["tags/2", "tags/3", "tags/4"] and rows["tags/2"]["PATH"] == "../../etc/passwd"
    assert rows["tags/2"]["TAGS"] == "rock" and rows["tags/4"]["TAGS"] == ""
    assert row_problem(rows["tags/3"]) == Diagnostic(
        "row_problem", unit="line", number=3, file="tags.tsv", cause=Diagnostic("row_cells", cells=1, columns=3)
    )


def test_a_quoted_cell_of_a_table_of_tags_may_hold_a_line_break(tmp_path):
    (tmp_path / "tags.tsv").write_text('ID\tPATH\tTAGS\n"1\nb"\t1/1.mp3\tx---rock\n2\t1/2\u2028.mp3\tx---pop\n')
    listed = {"listed": "tags.tsv", "folder": "audio", "sounds": ("PATH",), "keep": lambda row: True}
    rows = dict(open_tagged(repository_of(str(tmp_path), None, None), **listed))
    assert [(row["ID"], row["TAGS"]) for row in rows.values()] == [("1\nb", "rock"), ("2", "pop")]


def test_transcripts_find_their_sounds_below_a_folder(tmp_path):
    miniature.build("aishell-2-ios", tmp_path)
    questions = list(load_benchmark("aishell-2-ios").questions(mirror=tmp_path))
    assert [question.id for question in questions] == [f"row-{index}" for index in range(miniature.ROWS)]
    assert questions[0].references == (miniature.SENTENCES["zh"][0],) and questions[4].speaker is None
    assert [question.speaker for question in questions[:3]] == ["1080", "1081", None]
    assert questions[4].problem == "the row has no sound in 'audio': there is no sound file 'row-4.wav'"
    folder = tmp_path / "AISHELL" / "AISHELL-2018A-EVAL"
    (folder / "iOS" / "test" / "trans.txt").write_text("no tab here\n\nrow-0\thello\n")
    rows = dict(
        open_transcribed(repository_of(str(folder), None, None), listed="iOS/test/trans.txt", folder="iOS/test/wav")
    )
    assert (
        row_problem(rows["iOS/test/trans/1"])
        == "line 1 of iOS/test/trans.txt has neither a tab nor a bar between an id and words"
    )
    assert rows["iOS/test/trans/3"]["text"] == "hello"
    (folder / "words").mkdir()
    for name, data in {
        "row-0": "燈 熄滅了\n".encode("big5"),
        "row-1": "灯熄灭了".encode(),
        "row-2": b"\xff\xff",
    }.items():
        (folder / "words" / f"{name}.txt").write_bytes(data)
    rows = dict(open_transcribed(repository_of(str(folder), None, None), listed="words", folder="iOS/test/wav"))
    assert [rows[f"words/row-{at}"]["text"] for at in (0, 1)] == ["燈 熄滅了", "灯熄灭了"]
    assert row_problem(rows["words/row-2"]) == "'row-2.txt' is text neither in UTF-8 nor in Big5"
    (folder / "list.txt").write_text("row-0|感受停在|g an|C4\n", encoding="utf-8")
    rows = dict(open_transcribed(repository_of(str(folder), None, None), listed="list.txt", folder="iOS/test/wav"))
    assert rows["list/1"]["text"] == "感受停在"
    with refuses("no_file"):
        open_transcribed(repository_of(str(folder), None, None), listed="nothing.txt", folder=None)
    (folder / "list.txt").write_text("\n", encoding="utf-8")
    with refuses("list_of_nothing", listed="list.txt"):
        open_transcribed(repository_of(str(folder), None, None), listed="list.txt", folder=None)
    (folder / "words" / "row-3.txt").mkdir()
    rows = dict(open_transcribed(repository_of(str(folder), None, None), listed="words", folder="iOS/test/wav"))
    assert row_problem(rows["words/row-3"]) == "'row-3.txt' cannot be read: Is a directory"
    with refuses("list_of_nothing"):
        open_transcribed(repository_of(str(folder), None, None), listed="iOS", folder=None)


def test_a_sentence_of_esd_has_a_voice_of_its_speaker_that_says_another(tmp_path):
    miniature.build("esd-neutral-en", tmp_path)
    first, second, *others = load_benchmark("esd-neutral-en").questions(mirror=tmp_path)
    assert [first.id, second.id] == ["angry_0011_000371", "angry_0011_000372"] and len(others) == 6
    assert first.problem == "the row has no sound in 'audio': there is no sound file '0011_000022.wav'"
    assert (second.problem, second.fields["instruction"], second.speaker) == (None, "angrily", "0011")
    assert second.fields["text"] == second.references[0] == miniature.SENTENCES["en"][22 % 3]
    assert Path(str(second.audio.source)).name == "0011_000021.wav"
    same = list(load_benchmark("esd-emotional-en").questions(mirror=tmp_path))
    assert [Path(str(question.audio.source)).name for question in same if question.problem is None][:2] == [
        "0011_000371.wav",
        "0011_000722.wav",
    ]
    assert same[-1].id == "surprised_0011_001422" and same[-1].fields["prompt_text"] == miniature.SENTENCES["en"][0]
    (listed,) = tmp_path.rglob("0011.txt")
    lines = listed.read_text("utf-8").splitlines(keepends=True)
    listed.write_text("".join(lines).replace("\t", " "), "utf-8")
    with refuses("no_emotional_recording", speaker="0011", name="HLTSingapore/Emotional-Speech-Data"):
        list(load_benchmark("esd-neutral-en").questions(mirror=tmp_path))
    listed.write_text("".join(lines[:3]), "utf-8")
    with refuses(
        "no_voice_recording",
        listed="'0011/0011.txt' of 'HLTSingapore/Emotional-Speech-Data'",
        style="angry",
        name="0011_000371",
    ):
        list(load_benchmark("esd-emotional-en").questions(mirror=tmp_path))
    with refuses("no_speaker_folder", first=1, last=10):
        list(load_benchmark("esd-neutral-zh").questions(mirror=tmp_path))


def test_a_sentence_of_expresso_has_a_voice_of_enough_words_that_says_another(tmp_path):
    miniature.build("expresso-neutral", tmp_path)
    requested = list(load_benchmark("expresso-neutral").questions(mirror=tmp_path))
    options = {
        question.id: (question.speaker, question.fields["instruction"], question.subsets["style"])
        for question in requested
    }
    assert options == {
        f"{style}_{speaker}_{style}_00{number}": (speaker, manner, style)
        for speaker in ("ex01", "ex02")
        for style, manner in (("happy", "happily"), ("sad", "sadly"))
        for number in (345, 346, 347)
    }
    dropped = [question.problem for question in requested if question.problem is not None]
    assert dropped == ["the row has no sound in 'audio': there is no sound file 'ex02_default_00347.wav'"] * 2
    first, second, third, *_ = requested
    bare = [
        miniature.EXPRESSO_TEXTS[0].replace("*", ""),
        "The cat sat on the mat, and the dog sat by it.",
        miniature.EXPRESSO_TEXTS[2],
    ]
    assert (
        [one.fields["text"] for one in (first, second, third)]
        == [one.references[0] for one in (first, second, third)]
        == bare
    )
    table = pq.read_table(next(tmp_path.rglob("*.parquet")))
    names = table.column("id").to_pylist()

    def voice(question):
        return names[int(str(question.audio.source).rpartition("::")[2])]

    # The next sentence of the third is the first, which is one of three words.
    assert [voice(one) for one in (first, second, third)] == [
        "ex01_default_00346",
        "ex01_default_00347",
        "ex01_default_00346",
    ]
    styled = {one.id: one for one in load_benchmark("expresso-emotional").questions(mirror=tmp_path)}
    assert len(styled) == 36 and {one.subsets["style"] for one in styled.values()} == {
        "confused", "enunciated", "happy", "laughing", "sad", "whisper",
    }  # fmt: skip
    whispered = styled["whisper_ex02_whisper_00345"]
    assert (voice(whispered), whispered.fields["prompt_text"]) == ("ex02_whisper_00346", bare[1])
    (file,) = tmp_path.rglob("*.parquet")
    short = [text if text is None or len(text.split()) < 8 else "Hello." for text in table.column("text").to_pylist()]
    pq.write_table(table.set_column(table.column_names.index("text"), "text", [short]), file)
    with refuses(
        "no_voice_recording", style="neutral", name="ex01_confused_00345", words=Containing("of 8 words or more")
    ):
        list(load_benchmark("expresso-neutral").questions(mirror=tmp_path))
    pq.write_table(table.slice(0, 1), file)
    with refuses("no_test_recording", expected="expected ids such as ex01_sad_00345"):
        list(load_benchmark("expresso-neutral").questions(mirror=tmp_path))
    pq.write_table(table.drop_columns(["id"]), file)
    with refuses("no_such_columns", names=["id"]):
        list(load_benchmark("expresso-neutral").questions(mirror=tmp_path))
