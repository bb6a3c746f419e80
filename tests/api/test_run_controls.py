"""Controls on benchmarks in their published layout: a model that reads only the text has nothing beyond it, one that
listens has.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tracemalloc
from contextlib import closing, contextmanager

import miniature
import numpy as np
import pytest
import soundfile
import yaml
from local_http import Connection, LocalServer
from page_in_browser import choose, open_page, texts, until
from refusals import refuses

from codec_bench import compare, open_run
from codec_bench.api.merge import merge
from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.api.trackers import collect_material
from codec_bench.apps.leaderboards.api import leaderboard
from codec_bench.apps.site.boards import boards_of
from codec_bench.apps.site.records import describe_run
from codec_bench.audio.clip import Clip
from codec_bench.benchmark import load_benchmark
from codec_bench.benchmark.controls import apply_control
from codec_bench.benchmark.run_request import run_folder
from codec_bench.report.controls.rows import beyond_notes
from codec_bench.report.export_facts import results_of
from codec_bench.report.page import write_page
from codec_bench.report.page.collect import collect
from codec_bench.stats.paired import paired_test
from codec_bench.stats.summary import summarise
from codec_bench.store.answers import exchanges
from codec_bench.store.controls import Control, control_of, result_folders
from codec_bench.types import Audio, Message, Request

THREE = ("mmau-test-mini", "voxceleb1", "audio-mnist")
ROWS = 16
OF_TEXT = {
    "version": 1, "title": "Own", "summary": "Questions in text.", "category": "QA", "kind": "qa", "language": "en",
    "data": {"path": "rows.jsonl", "id": "id", "columns": {"question": "q", "reference": "right"}},
    "prompt": {"messages": [{"content": ["{{ question }}"]}]}, "metrics": ["accuracy[exact]"],
    "primary": "accuracy[exact]",
}  # fmt: skip


class Listener:
    """What a local chat endpoint answers, by what it reads and, if it is `listening`, by the pitch of the sound; `seen`
    holds what it got.
    """

    def __init__(self):
        self.listening, self.seen = False, []

    def answer(self, parts):
        text = " ".join(item["text"] for item in parts if item["type"] == "text")
        sounds = [base64.b64decode(item["input_audio"]["data"]) for item in parts if item["type"] == "input_audio"]
        samples = [soundfile.read(io.BytesIO(sound), always_2d=True)[0][:, 0] for sound in sounds]
        self.seen.append((text, samples))
        row = self.row(samples[0]) if samples and self.listening else None
        named = re.search(r"recording (\d+)", text)
        read = int(named[1]) if named and int(named[1]) % 2 else 0  # language alone tells the odd rows
        at = read if row is None else row
        if "one of [" in text:
            labels = re.search(r"one of \[(.*?)\]", text)[1].split(", ")
            return labels[at % len(labels)]
        return miniature.OPTIONS[at % 4] if "guitar" in text else str(at % 10)

    @staticmethod
    def row(samples):
        """The row whose tone this is; None for what is no tone."""
        if len(samples) < 1000 or not samples.any():
            return None
        spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 1 << 15))
        if spectrum.max() < 20 * np.sqrt(np.mean(spectrum**2)):  # noise
            return None
        return round((spectrum.argmax() * 16_000 / (1 << 15) - 220) / 20)


@contextmanager
def serve():
    """A listener and its address."""
    listener = Listener()

    class Chat(Connection):
        def do_POST(self):
            body = json.loads(self.body())
            content = body["messages"][-1]["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": listener.answer(parts)},
                "finish_reason": "stop",
            }
            usage = {"prompt_tokens": 10, "completion_tokens": 5}
            self.send_json(200, {"model": "m", "choices": [choice], "usage": usage})

        def do_GET(self):
            self.send_json(404, {})

    with closing(LocalServer(Chat)) as http:
        yield listener, f"{http.url}/v1"


@pytest.fixture
def served():
    with serve() as served:
        yield served


@pytest.fixture(scope="module")
def mirror(tmp_path_factory):
    """Three benchmarks with more rows than usual, so that intervals can tell something."""
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    folder, usual = tmp_path_factory.mktemp("mirror"), miniature.ROWS
    miniature.ROWS = ROWS
    try:
        for name in (*THREE, "voice-bench-mmsu"):
            miniature.build(name, folder)
    finally:
        miniature.ROWS = usual
    return folder


def run_against(url, mirror, benchmark, out, **options):
    """The outcome of benchmarks against the listener at a URL."""
    return run_benchmark(
        benchmark=benchmark, model="openai-chat", out=out, data=mirror, workers=1,
        options={"openai-chat": {"base_url": url, "model": "m"}}, **{"page": False, **options},
    )  # fmt: skip


@pytest.fixture
def ask(tmp_path, monkeypatch, served, mirror):
    """Runs benchmarks against the listener; returns the outcome."""
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    return lambda benchmark="mmau-test-mini", out="out", **options: run_against(
        served[1], mirror, benchmark, tmp_path / out, **options
    )


def under_controls(tmp_path_factory, mirror, listening):
    """The outcome of the three benchmarks with their controls, and its folder."""
    folder = tmp_path_factory.mktemp("controls")
    with pytest.MonkeyPatch.context() as patch, serve() as (listener, url):
        patch.setenv("CODEC_BENCH_CACHE", str(folder / "cache"))
        listener.listening = listening
        return run_against(url, mirror, THREE, folder / "out", controls=True), folder / "out"


@pytest.fixture(scope="module")
def of_reader(tmp_path_factory, mirror):
    """What a model that reads only the text has."""
    return under_controls(tmp_path_factory, mirror, listening=False)[0]


@pytest.fixture(scope="module")
def of_listener(tmp_path_factory, mirror):
    """What a model that listens has, and the folder of its runs."""
    return under_controls(tmp_path_factory, mirror, listening=True)


def controls(outcome, benchmark="mmau-test-mini"):
    """What a run has beyond its controls by what was given instead, of the primary metric."""
    run = outcome.runs[benchmark, "openai-chat"]
    return {one.control: one for one in summarise(run).controls if one.metric == load_benchmark(benchmark).primary}


def test_a_model_that_reads_only_the_text_has_nothing_beyond_it(of_reader):
    for name in THREE:
        alone = controls(of_reader, name)["text alone"]
        assert alone.is_significant is False and alone.difference == 0 and alone.given == alone.value > 0, alone
        assert alone.n == ROWS - 2  # a row has no sound, and another no right answer
        assert "nothing beyond the text was found" in beyond_notes([alone])[0]


def test_a_model_with_audio_has_what_its_sound_adds(of_listener):
    outcome, _ = of_listener
    for name in THREE:
        result = controls(outcome, name)
        alone = result["text alone"]
        assert alone.given == 1.0 and alone.is_significant
        # The row itself says what is right without sound: the rows that the text names, and those of option 0.
        complete = outcome.runs[name, "openai-chat"]
        values = {s.id: s.value for s in complete.scores("openai-chat", alone.metric) if s.value is not None}
        blind = outcome.controls[name, "openai-chat", "text alone"]
        others = {s.id: s.value for s in blind.scores("openai-chat", alone.metric) if s.value is not None}
        ids = sorted(values.keys() & others.keys())
        same = paired_test([values[id] for id in ids], [others[id] for id in ids], bounds=(0, 1))
        assert (alone.difference, list(alone.ci95), alone.p) == (same.difference, [same.low, same.high], same.p)
        assert alone.right == sum(others[id] for id in ids) == alone.right_in_both
        assert result["another sound"].given - result["another sound"].value == pytest.approx(
            result["another sound"].difference
        )
    mmau = controls(outcome)
    assert mmau["text alone"].right == sum(n % 2 or n % 4 == 0 for n in range(ROWS) if n not in (4, 5))
    assert mmau["options alone"].right < mmau["text alone"].right
    assert "beyond the options (95 %" in beyond_notes([mmau["options alone"]])[0]


def test_each_control_gives_what_it_says_and_the_same_again(ask, served):
    listener = served[0]
    output = {}
    for sound in ("given", "none", "silence", "noise", "another", "shuffled", "level"):
        drawn = sound in ("noise", "another", "shuffled")
        for again in range(1 + drawn):
            listener.seen.clear()
            ask("mmau-test-mini", out=f"{sound}-{again}", sound=sound, cache=False)
            output[sound, again] = {text: samples for text, samples in listener.seen}
        first, second = output[sound, 0], output[sound, int(drawn)]
        assert first.keys() == second.keys()
        assert all(np.array_equal(a, b) for text in first for a, b in zip(first[text], second[text]))
    options = {text: samples[0] for text, samples in output["given", 0].items()}
    assert not any(output["none", 0].values()) and len(output["none", 0]) == len(options)
    for text, samples in options.items():
        silence, noise, another = (output[sound, 0][text][0] for sound in ("silence", "noise", "another"))
        assert len(silence) == len(noise) == len(another) == len(samples)
        assert not silence.any() and np.sqrt(np.mean(noise**2)) == pytest.approx(0.05, rel=0.1)
        assert not np.array_equal(another, samples) and any(
            np.array_equal(another, other) for other in options.values()
        )
    # Tones of 0.1 s cannot be cut into segments, which each row's reason states.
    assert not output["shuffled", 0]


def test_a_control_is_never_mistaken_for_a_result(of_listener, tmp_path):
    outcome, folder = of_listener
    complete, blind = (
        outcome.runs["mmau-test-mini", "openai-chat"],
        outcome.controls["mmau-test-mini", "openai-chat", "text alone"],
    )
    assert control_of(blind) == Control("none") and not control_of(complete)
    assert "control: text alone" in describe_run(blind)["board"]["title"]
    assert describe_run(blind)["board"]["key"] != describe_run(complete)["board"]["key"]
    entry = {name: value for name, value in describe_run(blind).items() if name != "summary"}
    (board,) = boards_of([entry, entry | {"key": "another"}], []).values()
    assert len(board["rows"]) == 2 and not any(row.get("best") for row in board["rows"]) and not board["published"]
    assert compare(runs=[complete, blind])[0].differences == ("control: text alone",)
    with refuses("export_of_control", control="text alone"):
        results_of(blind, None, "model-index")
    assert {name.partition("/")[0] for name in collect_material(blind, summarise(blind), set()).values} == {
        "openai-chat (control: text alone)",
        "progress",
    }
    # On a page of several runs it is named as what it is, in either order, and is never the best.
    item = f"{ROWS} of 1,000 questions"
    held = collect([blind, complete, blind], None, audio_bytes=0, max_rows=100, folder=tmp_path)
    assert held.page["sets"] == [f"mmau-test-mini (control: text alone, {item})", f"mmau-test-mini ({item})"]
    assert not any(cell and cell["best"] for row in held.page["table"] for cell in row["cells"])
    assert set(result_folders(folder)) == {run.folder for run in outcome.runs.values()}
    with refuses("control_no_result"):
        result_folders(blind.folder)
    column = {"name": "MMAU", "benchmark": "mmau-test-mini", "metric": "accuracy[mmau]", "counts": "score"}
    (tmp_path / "board.yaml").write_text(yaml.safe_dump({"version": 1, "summary": "one", "columns": [column]}))
    board = leaderboard(str(tmp_path / "board.yaml"), [folder])
    rows = {row.name: row for row in board.rows if not row.published}
    mine = next(row for row in rows.values() if not row.deviations)
    others = [row for row in rows.values() if row.deviations]
    assert {row.deviations for row in others} == {
        ("control: text alone",),
        ("control: another sound",),
        ("control: options alone",),
    }
    assert not any(row.compared for row in others)
    ((value, ends),) = mine.gains_over_text.values()
    alone = controls(outcome)["text alone"]
    assert float(value) == pytest.approx(100 * alone.difference, abs=0.01) and ends[0] > 0
    assert mine.gain_over_text.startswith(f"+{value} [")
    rows = {(row.id, row.extra) for row in complete.rows()}
    assert any(json.loads(extra)["control: text alone"] == "right" for _, extra in rows)
    assert all(json.loads(row.extra)["control"] == "text alone" for row in blind.rows())


def test_an_item_says_how_it_was_answered_under_controls(ask, of_listener, browser, tmp_path):
    outcome, _ = of_listener
    complete = outcome.runs["mmau-test-mini", "openai-chat"]
    deaf = ask(out="deaf", sound="given").runs["mmau-test-mini", "openai-chat"]
    write_page([complete, deaf], tmp_path / "page.html")
    open_page(browser, tmp_path / "page.html")
    alone = controls(outcome)["text alone"]
    either = {e.question.id for e in exchanges(complete) if "right" in (e.question.subsets or {}).values()}
    choose(browser, "#by-status", "controlled")
    assert texts(browser, "#sample-count")[0].startswith(f"{len(either)} rows") and alone.right <= len(either) < 44
    browser.execute_script("document.querySelector('#sample-table .open').click()")
    until(lambda: browser.execute_script("return document.getElementById('detail').open"))
    # The marks are those of one system's answers: the other one has no controls.
    (marks,) = texts(browser, "#detail pre.controlled")
    assert "right with text alone" in marks and "control" not in " ".join(texts(browser, "#detail .exchange > small"))


def test_a_control_may_come_later_and_is_reported_to_the_run_next_to_it(ask, served, tmp_path):
    ask()
    before = open_run(run_folder(tmp_path / "out", "mmau-test-mini", "openai-chat"))
    assert not summarise(before).controls
    served[0].seen.clear()
    ask(sound="noise", page=True)
    requests = len(served[0].seen)
    assert requests == ROWS - 1  # the answers to the given sound are not taken from the cache
    folder = run_folder(tmp_path / "out", "mmau-test-mini", "openai-chat")
    with closing(open_run(folder)) as run:
        assert [one.control for one in summarise(run).controls] == ["noise"]
        assert {
            mark for e in exchanges(run) for name, mark in e.question.subsets.items() if name == "control: noise"
        } == {"right", "wrong", "failed"}
    assert "Beyond the controls" in (folder / "report.html").read_text("utf-8")
    ask(sound="noise")
    assert len(served[0].seen) == requests  # nothing is sent twice


def test_shards_of_controls_are_merged_as_one_machine_has_them(ask, of_reader, tmp_path):
    for item in ("1/2", "2/2"):
        ask(out=f"part-{item[0]}", controls=True, shard=item)
    merged = merge(parts=[tmp_path / "part-1", tmp_path / "part-2"], out=tmp_path / "merged", page=False)
    assert len(merged.runs) == 4
    run = merged.runs["mmau-test-mini", "openai-chat"]
    assert summarise(run).controls == summarise(of_reader.runs["mmau-test-mini", "openai-chat"]).controls


@pytest.mark.parametrize(
    ("benchmark", "options", "message"),
    [
        (
            "{own}",
            {"sound": "silence"},
            {"code": "control_changes_no_sound", "model": "openai-chat", "sound": "silence"},
        ),
        ("{own}", {"controls": True}, {"code": "control_changes_no_sound", "model": "openai-chat"}),
        ("mmau-test-mini", {"sound": "loud"}, {"code": "option_choice", "option": "sound", "value": "loud"}),
        ("mmau-test-mini", {"question": "no"}, {"code": "option_choice", "known": ["given", "none"]}),
        ("mmau-test-mini", {"sound": "none", "controls": True}, {"code": "control_and_controls"}),
        ("voxceleb1", {"question": "none"}, {"code": "control_changes_no_question", "name": "voxceleb1"}),
        ("voice-bench-mmsu", {"sound": "none"}, {"code": "control_leaves_nothing", "name": "voice-bench-mmsu"}),
    ],
)  # fmt: skip
def test_what_cannot_be_controlled_is_one_sentence(ask, tmp_path, benchmark, options, message):
    actual = tmp_path / "own"
    actual.mkdir()
    (actual / "benchmark.yaml").write_text(yaml.safe_dump(OF_TEXT))
    (actual / "rows.jsonl").write_text('{"id": "a", "q": "Of France?", "right": "Paris"}\n')
    with refuses(**message) as error:
        ask(benchmark.format(own=actual), phase="answers", **options)
    assert "\n" not in error.value.message


def test_the_number_of_questions_cannot_change_where_their_sounds_are_dealt_out(ask):
    ask(sound="another", limit=10)
    with refuses("choice_fixed_by_sounds"):
        ask(sound="another", limit=20)


def test_ten_minutes_are_shuffled_in_bounded_memory():
    rate, step, seconds = 16_000, 8_000, 600.2
    count = round(rate * seconds)
    wav = io.BytesIO()
    soundfile.write(wav, (np.arange(count) // step).astype(np.int16), rate, format="WAV")
    request = Request("a", (Message("user", (Clip(wav.getvalue(), "a"), "What is it?")),))
    requests = apply_control(request, Control("shuffled"), 0, "a", lambda: request)
    tracemalloc.start()
    try:
        shuffled = requests.messages[0].content[0].read().samples[0]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(shuffled) == count and peak < 3 * shuffled.nbytes  # the sound, what it becomes, and what decoding takes
    order = np.rint(shuffled[:: step // 10] * 32768).astype(int)
    pieces = order[np.flatnonzero(np.diff(order, prepend=-1))].tolist()
    # Each piece is there once and whole: in another order, with nothing between.
    assert sorted(pieces) == list(range(1201)) and pieces != sorted(pieces)
    assert np.array_equal(np.bincount(np.rint(shuffled * 32768).astype(int)), [step] * 1200 + [count - 1200 * step])
    again = (
        apply_control(request, Control("shuffled"), 0, "a", lambda: request).messages[0].content[0].read().samples[0]
    )
    assert np.array_equal(shuffled, again)


@pytest.mark.parametrize(("gain", "silent"), [(0.003, False), (0.4, False), (0.0, True)])
def test_every_sound_is_at_one_level(gain, silent):
    """The RMS is that of the noise whatever the sound's was, and the waveform is the same but for one factor."""
    samples = (gain * np.random.default_rng(3).standard_normal((2, 16_000)).clip(-2, 2)).astype(np.float32)
    request = Request("a", (Message("user", (Clip(Audio(samples, 16_000)),)),))
    (item,) = apply_control(request, Control("level"), 0, "a", lambda: request).messages[0].content
    output = item.read().samples
    rms = np.sqrt(np.mean(output.astype(float) ** 2))
    assert rms == pytest.approx(0.0 if silent else 0.05, rel=2e-3)
    if not silent:
        assert np.corrcoef(output.ravel(), samples.ravel())[0, 1] > 0.9999
