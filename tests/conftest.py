"""Fixtures for all tests: speech (embedded, and real recordings if there are any) and seeded noise.

A run ends with the number of skipped tests by reason, and with the most memory that a process of tests took.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import forked
import hidden_programs
import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from page_in_browser import browser  # noqa: F401

from codec_bench.machine.environment import cpu_count, resident_bytes

RECORDINGS = "CODEC_BENCH_TEST_RECORDINGS"

# Many container images set this. Every process would then compile the modules that it imports, torch's too, each time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Libraries wait for their threads by computing, and read this when they are imported, which the conftest.py of a room
# may do before pytest configures anything.
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).parent
EMBEDDED = TESTS.parent / "codec_bench" / "data" / "embedded"
SETS = {"embedded": EMBEDDED}
GIVES_BACK_FROM = 1_300_000_000
"""Bytes that a process of tests may hold before it looks for what it can give back, which takes time."""
AND_AFTER = 100_000_000
"""Bytes that it may then take before it looks again, within a file."""
ALL_AFTER = 100_000_000
"""Bytes that it may keep after a file before it looks at objects of earlier files again: some may be garbage now."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGE_PIECE = 32 << 20
"""By their numbers in malloc.h: what stays at the end of the heap, and from which size on a piece of memory has pages
of its own.
"""
QUICK_S = 0.1
"""Setups and teardowns that take longer are reported even if they passed."""
HELD = pytest.StashKey[int]()
"""The least that this process has held since it last gave memory back."""
AFTER_FILE = pytest.StashKey[int]()
"""The least that it held after the last file. During a file, its networks are in use and count in `HELD`."""
SEARCHED = pytest.StashKey[int]()
"""What this process held after all of its objects were last looked at."""
PEAKS = pytest.StashKey[list[tuple[int, str]]]()
"""The most bytes that each process of tests took, and the file whose tests took them."""

LARGE_FILES = [
    "features/test_utmos.py", "networks/test_dnsmos.py", "metrics/test_distillmos.py", "metrics/test_squim.py",
    "features/test_dnsmos.py", "kernels/test_dnsmos.py",
    "features/recognisers/test_whisper_tiny_en.py", "kernels/test_rvq.py", "gpu/test_tensors.py",
    "codecs/neural/test_encodec.py", "models/test_recogniser.py", "models/test_cascade.py", "networks/test_log_mel.py",
]  # fmt: skip
"""Files whose tests take 0.15 to 0.7 GB for a moment. All tests begin with them, because a new process holds least."""
# Those that cost most, by `make test-times`. `make test` runs them before the others, so that no process still runs one
# when the others have ended; `make test-core` leaves them out.
LONG_FILES = [
    "features/test_utmos.py",
    "gpu/test_features.py",
    "report/test_browser.py",
    "codecs/test_contract.py",
    "networks/test_dnsmos.py",
    "api/test_run_benchmark.py",
    "engine/test_run.py",
    "engine/test_faults.py",
    "contract/test_runs.py",
    "contract/test_benchmarks.py",
    "codecs/classical/test_bitstream.py",
    "apps/site/test_browser.py",
    "features/recognisers/test_whisper.py",
    "features/recognisers/test_whisper_tiny_en.py",
    "api/test_run_controls.py",
    "features/test_dnsmos.py",
    "cli/test_commands.py",
    "engine/test_hostile_code.py",
    "apps/serving/test_serving.py",
    "codecs/checks/test_wrong_codecs.py",
    "test_packaging.py",
    "features/recognisers/test_pocketsphinx.py",
    "report/test_frames.py",
    "engine/test_silence.py",
    "cli/test_run_suites.py",
    "gpu/test_codecs.py",
    "metrics/test_visqol.py",
    "kernels/test_dnsmos.py",
    "benchmark/metrics/test_ultraeval.py",
    "apps/judging/test_words.py",
    "models/test_isolated.py",
    "apps/profiling/test_command.py",
    "workers/test_host.py",
    "apps/profiling/test_quality.py",
    "terminal/test_stopping.py",
    "models/in_process/test_transformers_model.py",
    "gpu/test_models.py",
    "engine/test_custom_input.py",
    "engine/test_checks.py",
    "apps/listening/test_browser.py",
    "apps/gating/test_gating.py",
    "report/test_plots.py",
    "models/test_isolated_models.py",
    "apps/judging/test_api.py",
    "api/test_warnings.py",
    "features/recognisers/test_paraformer.py",
    "metrics/test_pesq.py",
    "fuzz/test_fuzz.py",
    "workers/test_pool.py",
    "test_examples.py",
    "report/test_figures.py",
    "features/recognisers/test_whisper_torch.py",
    "api/test_tracking.py",
    "benchmark/judge/test_replies.py",
    "apps/conversation/test_converse.py",
    "metrics/test_utmosv2.py",
    "models/in_process/test_transformers_voices.py",
    "apps/judging/test_compare.py",
    "api/test_compile_kernels.py",
    "messages/test_reworded.py",
    "features/test_contract.py",
    "codecs/neural/test_mimi.py",
    "weights/test_unfilled.py",
    "metrics/test_distillmos.py",
    "codecs/checks/test_cost.py",
    "apps/agreement/test_p1401.py",
    "test_docs.py",
    "cli/test_run_bad_input.py",
    "bench/test_coverage.py",
    "benchmark/reading/test_steps.py",
    "apps/listening/test_crowd.py",
    "codecs/neural/test_wavtokenizer.py",
    "text/test_rules_published.py",
    "features/recognisers/test_transformers_asr.py",
    "data/test_hub.py",
    "engine/test_evaluation.py",
    "codecs/neural/test_encodec.py",
    "report/test_exchanges.py",
    "metrics/test_squim.py",
    "cli/test_config.py",
    "data/test_remote.py",
    "apps/cluster/test_part_faults.py",
    "text/test_cardinals.py",
    "weights/test_command.py",
    "gpu/test_compiled.py",
    "contract/test_adding_columns.py",
    "weights/test_converted.py",
    "engine/test_worse_estimates.py",
    "engine/test_scheduler.py",
    "api/test_training_loop.py",
    "apps/agreement/test_stability.py",
    "text/test_error_rate.py",
    "data/test_table.py",
    "contract/test_adding_an_option.py",
    "kernels/test_compilation.py",
    "text/test_rules.py",
    "features/test_auto_att.py",
    "codecs/neural/test_snac.py",
    "metrics/test_plcmos.py",
    "gpu/test_tensors.py",
    "api/test_public_api.py",
    "codecs/neural/test_dac.py",
    "apps/conversation/test_full_duplex.py",
    "apps/site/test_published.py",
    "test_layout.py",
    "apps/profiling/test_token_model.py",
    "features/speakers/test_ge2e.py",
    "apps/profiling/test_probes.py",
    "api/test_run_pairs.py",
    "api/test_run_choices.py",
    "bench/test_checks.py",
    "report/test_page.py",
    "kernels/test_edit_distance.py",
    "features/speakers/test_speaker_encoder.py",
    "features/recognisers/test_ctc.py",
    "api/test_run_endpoint.py",
    "benchmark/judge/test_tested.py",
    "apps/profiling/test_latent_bits.py",
    "metrics/test_stft_distance.py",
    "benchmark/metrics/test_ifeval.py",
    "metrics/test_loizou.py",
    "kernels/test_rvq.py",
    "text/test_steps.py",
    "benchmark/judge/test_metric.py",
    "kernels/test_pitch.py",
    "stats/test_bd_rate.py",
    "kernels/test_cepstrum.py",
    "metrics/test_event_accuracy.py",
    "gpu/test_launches.py",
    "apps/profiling/test_page.py",
    "metrics/test_stoi.py",
    "api/test_reference_role.py",
    "apps/leaderboards/test_rank_uncertainty.py",
    "apps/profiling/test_check_codec.py",
    "api/test_notebook.py",
    "apps/conversation/test_tau_voice.py",
    "store/test_copies.py",
    "codecs/neural/test_checkpoints.py",
    "data/test_layouts.py",
    "apps/conversation/test_judged.py",
    "store/test_export.py",
]
ENVIRONMENT: dict[str, str] = {}
"""The variables that libraries read when they are imported, as they were before the first test."""
PROGRAM_FILES = {
    "apps/building/test_whole.py", "apps/cluster/test_real_slurm.py", "audio/test_loudness.py",
    "benchmark/metrics/test_captions.py",
    "benchmark/metrics/test_registry.py", "codecs/test_codecs.py", "codecs/test_command_examples.py",
    "decoding/test_decode.py",
    "metrics/test_level.py", "report/test_paper.py",
}  # fmt: skip
"""Files whose tests use an optional program of the machine."""
if os.environ.get(RECORDINGS):
    SETS["recordings"] = Path(os.environ[RECORDINGS])


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick` leaves the files out that take longest; `--without-programs` hides the optional programs."""
    parser.addoption("--quick", action="store_true", help="leave the files out that take longest")
    parser.addoption("--without-programs", action="store_true", help="hide optional programs, such as Chromium")
    parser.addoption("--order-seed", type=int, help="run the files, and the tests of each, in a random order")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--quick`, the long files are not looked at."""
    long = config.getoption("--quick") and collection_path in {TESTS / name for name in LONG_FILES}
    return True if long else None


def pytest_configure(config: pytest.Config) -> None:
    """If the variable names a folder without recordings, that is a mistake: tests are not silently skipped.

    A shell that runs the tests in the background has them ignore an interrupt. Tests that interrupt themselves need it.
    """
    config.stash[PEAKS] = []
    if config.getoption("--without-programs"):
        hidden_programs.hide(config)
    gc.set_threshold(*forked.GC_THRESHOLDS)
    if "PYTEST_XDIST_WORKER" in os.environ:
        # oneDNN keeps what it has made ready for the last thousand shapes. Hardly a test meets more than a hundred.
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
        # What a network has held goes back to the system as soon as it is freed. By itself the C library keeps up to 32
        # MB of a piece.
        with suppress(OSError, AttributeError):  # the C library has no such function
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_PIECE)
            ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, 4 * LARGE_PIECE)
            # Each thread would keep a heap of its own: after one Whisper has run, 54 MB.
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)
    # A run gets one worker of one thread, as on a machine of one core. A second one takes longer to start than a few
    # clips take.
    os.sched_getaffinity = lambda _: {0}
    # How long an example takes depends on the machine, and says nothing about the code.
    hypothesis.settings.register_profile("any machine", deadline=None)
    hypothesis.settings.load_profile("any machine")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # pytest loads readline, which sets 80 columns for all processes that start here; `os.environ` does not show it.
    for variable in ("COLUMNS", "LINES"):
        if variable not in os.environ:
            os.unsetenv(variable)
    for name, folder in SETS.items():
        if not (folder / "manifest.jsonl").is_file():
            raise pytest.UsageError(
                f"{RECORDINGS} names '{folder}' for the {name}, and there is no '{folder / 'manifest.jsonl'}'; "
                "CONTRIBUTING.md says what the folder holds"
            )


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=pytest.mark.long) if name == "recordings" else name for name in SETS],
)
def speech_set(request) -> str:
    """`embedded` and, where there are real recordings, `recordings`: `make test-long` runs a test on these too."""
    return request.param


@pytest.fixture(scope="session")
def speech_dir(speech_set) -> Path:
    """The folder of the speech, with its manifest.jsonl."""
    return SETS[speech_set]


@pytest.fixture(scope="session")
def spoken(speech_dir):
    """Every clip of the speech as (row of the manifest, Audio)."""
    return read_speech(speech_dir)


@pytest.fixture(scope="module")
def speechmos_scores():
    """The scores of the package speechmos for a signal, under the project's names."""
    import speechmos_scores

    return speechmos_scores.speechmos_scores()


@pytest.fixture(scope="session")
def embedded():
    """The embedded speech as (Sample, Audio)."""
    from codec_bench.data import open_source
    from codec_bench.types import Audio

    return [(sample, Audio.read(sample.audio)) for sample in open_source("embedded")]


def read_speech(folder: Path):
    """The clips of a folder with a manifest.jsonl as (row, Audio)."""
    from codec_bench.types import Audio

    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]
    return [(row, Audio.read(folder / row["audio"])) for row in rows]


@pytest.fixture(scope="module")
def one_thread():
    """Torch on one thread: other cores run other tests, and small networks do not become faster with two."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", autouse=True)
def _forked_workers():
    """The workers of runs that tests start in this process are forked, which saves their
    imports (`golden/forked.py`).
    """
    from codec_bench.engine import pool

    ENVIRONMENT.update(forked.read_at_import(os.environ))
    if sys.platform != "linux":
        yield
        return
    name = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    with closing(forked.Started({**os.environ, **pool.thread_variables(1)}, name=name)) as pool.subprocess:
        yield
    pool.subprocess = subprocess


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs `codec-bench ARGS` in this process, which saves its imports; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for variable in ("OPENAI_API_KEY", "CODEC_BENCH_DATA"):
        monkeypatch.delenv(variable, raising=False)

    def run(*args):
        from codec_bench.cli import main

        monkeypatch.setattr(sys, "argv", ["codec-bench", *map(str, args)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def rng():
    """A seeded generator of NumPy."""
    import numpy as np

    return np.random.default_rng(20260101)


@pytest.fixture(scope="session", autouse=True)
def _no_network():
    """Refuses every connection that leaves the machine, also in fixtures that tests share."""
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family == socket.AF_UNIX or (
            isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1", "localhost")
        ):
            return connect(self, address)
        raise OSError(f"a test tried to reach {address}: tests use no network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        yield


def pytest_collection(session: pytest.Session) -> None:
    """Nothing that is made while the tests are collected can be thrown away, so no time is spent on looking for it."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What the tests are made of lives as long as this process: later searches for garbage pass it by."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks the tests that use an optional program."""
    if (
        "browser" in getattr(item, "fixturenames", ())
        or any(name in item.name for name in ("amr-wb", "amr_wb", "meteor", "bitstreams"))
        or item.path.relative_to(TESTS).as_posix() in PROGRAM_FILES
    ):
        item.add_marker(pytest.mark.programs)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the files first that take most memory, then those that take longest; all else keeps its order. With a seed,
    every order is random.
    """
    seed = config.getoption("--order-seed")
    if seed is not None:
        random.Random(seed).shuffle(items)
        files = {path: index for index, path in enumerate(dict.fromkeys(item.path for item in items))}
        items.sort(key=lambda item: files[item.path])
        return
    places = {TESTS / name: index for index, name in enumerate(dict.fromkeys(LARGE_FILES + LONG_FILES))}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Each test draws the same numbers, whichever tests ran before it. Tests marked `gpu` need an NVIDIA GPU."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        # Before CUDA starts, `torch.manual_seed` records the stack for it, which takes longer than most tests.
        (torch if torch.cuda.is_initialized() else torch.default_generator).manual_seed(0)
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("there is no NVIDIA GPU")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Leave setups and teardowns that were quick and passed out of the reports.

    Sending three reports to the main process takes as long as a small test.
    """
    if not hasattr(item.config, "workerinput") or item.config.pluginmanager.has_plugin("timed tests"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration >= QUICK_S:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None):
    """After the last test of a file, the networks that its tests shared are given back; after each other one, what is
    garbage by then.
    """
    result = yield
    if isinstance(item, pytest.Function) and (nextitem is None or nextitem.path != item.path):
        note_peak(item)
        let_go(item.module)
        restore_environment()
        if hasattr(item.config, "workerinput"):  # the reports, 3 KB for each phase of a test, have been sent
            item.config.pluginmanager.get_plugin("terminalreporter").stats.clear()
        give_back(item.config, AND_AFTER // 4, freezes=True)
    else:
        give_back(item.config, AND_AFTER)
    return result


def note_peak(item: pytest.Item) -> None:
    """Notes how much memory this process has taken at most; a file that raised it is named."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    known = item.config.stash[PEAKS]
    if not known or peak > known[0][0]:
        known[:] = [(peak, str(item.path.relative_to(Path(__file__).parent)))]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process of tests more than there are cores: a quarter of the time, a test waits for a browser or for another
    process. Quick tests hardly wait, and each process imports what they need.
    """
    return cpu_count() + (not config.getoption("--quick"))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process that runs tests for another tells it what was noted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["peaks"] = session.config.stash[PEAKS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    """Takes the notes of a process of tests; one that died has sent none."""
    node.config.stash[PEAKS] += [tuple(one) for one in getattr(node, "workeroutput", {}).get("peaks", ())]


def restore_environment() -> None:
    """Undo what imports of a file's tests set.

    In another environment, later files' commands would not be forked.
    """
    for name in {*forked.read_at_import(os.environ), *ENVIRONMENT} - forked.OF_SCIKIT_LEARN:
        if name in ENVIRONMENT:
            os.environ[name] = ENVIRONMENT[name]
        else:
            os.environ.pop(name, None)


def let_go(module) -> None:
    """Empties the caches of a file of tests, and those of stand-ins that it imports.

    A process that runs many files would otherwise hold every network that any of them has built.
    """
    for value in list(vars(module).values()):
        if hasattr(value, "cache_clear") and not str(getattr(value, "__module__", "")).startswith("codec_bench"):
            value.cache_clear()
    if "pythainlp.tokenize" in sys.modules:  # the dictionary takes 70 MB
        sys.modules["pythainlp.tokenize"].word_dict_trie.cache_clear()


def give_back(config: pytest.Config, growth: int, *, freezes: bool = False) -> None:
    """Throws garbage away and returns free memory to the system, if this process holds much and has grown by more than
    `growth` bytes. With `freezes`, after a file, later searches pass by what is left.
    """
    holds = resident_bytes(os.getpid())
    least = min(holds, config.stash.get(AFTER_FILE if freezes else HELD, GIVES_BACK_FROM))
    if holds > GIVES_BACK_FROM and holds >= least + growth:
        least = search_garbage()
        if freezes and least >= config.stash.get(SEARCHED, GIVES_BACK_FROM) + ALL_AFTER:
            gc.unfreeze()
            least = config.stash[SEARCHED] = search_garbage()
        if freezes:
            gc.freeze()
    config.stash[HELD] = least
    if freezes:
        config.stash[AFTER_FILE] = least


def search_garbage() -> int:
    """Throws garbage away and returns free memory to the system; returns the bytes that this process then holds."""
    gc.collect()
    with suppress(OSError, AttributeError):  # the C library has no such function
        ctypes.CDLL(None).malloc_trim(0)
    return resident_bytes(os.getpid())


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """The last lines of a run: how many tests were skipped, by reason, and the memory of the
    largest process of tests.
    """
    result = yield
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in reports
    )
    if reasons:
        terminalreporter.section("skipped tests by reason")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:5d}  {reason}")
    if peaks := terminalreporter.config.stash[PEAKS]:
        size, file = max(peaks)
        terminalreporter.line(f"largest test worker: {size / 1e9:.1f} GB, in {file}")
    return result
