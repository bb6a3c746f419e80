"""A metric that is a program: its number is the program's, and whatever the program does is a status with a reason."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from codec_bench import evaluate
from codec_bench.metrics import Inputs, build_metric

SNR = """
import sys, wave
import numpy as np
def read(path):
    with wave.open(path) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2), file.getparams()
        return file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
(rate, a), (_, b) = read(sys.argv[1]), read(sys.argv[2])
n = min(len(a), len(b))
print("rate", rate)
print("SNR = %.6f dB, version 3" % (10 * np.log10(np.square(a[:n]).sum() / np.square(a[:n] - b[:n]).sum())))
"""
SIGNAL = np.sin(np.arange(16000) / 7).astype(np.float32) / 2
ITEM = Inputs("a", 16000, reference=SIGNAL, estimate=(SIGNAL * 0.9).astype(np.float32))


@pytest.fixture
def metric(tmp_path):
    """Writes a file that names a program, and gives its path."""

    def write(script=SNR, more="value: 'SNR = (\\S+) dB'", arguments='"{reference}", "{estimate}"'):
        (tmp_path / "tool.py").write_text(script)
        path = tmp_path / "tool.yaml"
        path.write_text(
            f'version: 1\nprogram: ["{sys.executable}", "{{folder}}/tool.py", {arguments}]\nrate_hz: 16000\nunit: dB\n'
            f"{more}\n"
        )
        return str(path)

    return write


def test_the_number_is_the_programs(metric):
    held = build_metric(metric())
    (score,) = held.compute([ITEM])
    assert score.value == pytest.approx(20.0, abs=0.01) and score.protocol.startswith("tool/command-")
    assert (held.kind, held.rate_hz, held.unit, held.higher_is_better) == ("pair", 16000, "dB", True)
    assert build_metric(metric(more="")).compute([ITEM])[0].value == 3  # the last number, where the file names none


def test_a_script_that_has_changed_has_another_protocol(metric):
    first, second = build_metric(metric()), build_metric(metric(SNR + "# changed"))
    assert first.protocol != second.protocol and build_metric(metric()).protocol == first.protocol


FAILURES = {
    "import sys; sys.exit('no licence found')": r"ended with exit status 1: no licence found",
    "print('n/a')": r"wrote no number that fits",
    "import time; time.sleep(60)": r"was stopped after 0.5 s",
}


@pytest.mark.parametrize("script", FAILURES)
def test_a_program_that_fails_is_a_status(script, metric):
    (score,) = build_metric(metric(script, "timeout_s: 0.5")).compute([ITEM])
    assert (score.status, score.value) == ("failed", None) and FAILURES[script] in score.reason


def test_a_file_that_is_wrong_is_one_sentence(metric, tmp_path):
    with refuses("no_placeholder", role="program", name="reference"):
        build_metric(metric(arguments='"{estimate}"'))
    with refuses("value_groups", groups=0):
        build_metric(metric(more="value: '[0-9]+'"))
    path = Path(metric())
    path.write_text(path.read_text().replace(sys.executable, "no-such-tool"))
    with refuses("no_program", program="no-such-tool", role="metric"):
        build_metric(str(path))


def test_a_run_measures_with_it(metric, tmp_path):
    run = evaluate(
        codec="g711-ulaw", data="embedded", metrics=f"snr,{metric()}", limit=2, out=str(tmp_path / "run"), workers=1
    )
    values = {(row.metric == "snr", row.id): row.value for row in run.rows()}
    mine = {sample: value for (actual, sample), value in values.items() if not actual}
    assert len(mine) == 2
    for sample, value in mine.items():  # the program computes what the metric `snr` is
        assert value == pytest.approx(values[True, sample], abs=0.05)
