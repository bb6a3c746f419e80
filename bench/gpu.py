"""Measure what a GPU can show in two times nine minutes: `make gpu`.

    python bench/gpu.py                     all steps; rows go to bench/data/ as soon as they are known
    python bench/gpu.py --part 1            the first part or the second, where one command may take ten minutes
    python bench/gpu.py --only codecs rvq   some steps, by name
    python bench/gpu.py --limit-s 300       ends sooner
    python bench/gpu.py --pretend           tries the steps in a reduced size without a GPU, writes no rows

Every step is a process with seconds reserved for it, and may take what earlier steps left. A step without its packages
or without a GPU is skipped. The table goes to standard output, everything else to standard error. In a copy of the
project, CODEC_BENCH_REVISION names the revision: what `git describe --always --dirty --abbrev=10` prints.

With `--pretend`, torch computes on a pretended GPU (`gpu_pretended.py`). Runs with worker processes and Whisper in
CTranslate2 are tried on the CPU.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
sys.path.insert(0, str(ROOT))
from codec_bench.engine.device import cuda_count  # noqa: E402 - needs no package, unlike most steps

PART_S, LEAST_S = 540, 5  # seconds that a part may take, and the fewest with which a step starts
PATIENCE = 20  # how many times its limit, that of a GPU, a step may take on a CPU


@dataclass(frozen=True)
class Step:
    """A step, with the seconds reserved for it, its words for Python and the modules that they need.

    Args:
        anywhere: whether it needs no GPU. reduced: the words that try it without a GPU, if there are any.
    """

    name: str
    limit_s: int
    words: tuple[str, ...]
    needs: tuple[str, ...] = ()
    anywhere: bool = False
    reduced: tuple[str, ...] = ()


_BASE = ("torch", "numpy", "soundfile", "soxr", "pydantic", "yaml")


def _script(
    name: str, limit_s: int, file: str, words: str = "", *, needs: tuple[str, ...] = (), reduced: str, cpu: bool = False
) -> Step:
    """A step that is a script of this folder; its `reduced` trial pretends a GPU or takes the CPU."""
    path = str(BENCH / file)
    tried = (str(BENCH / "gpu_pretended.py"), *(("--cpu",) if cpu else ()), path, *reduced.split())
    return Step(name, limit_s, (path, *words.split()), (*_BASE, *needs), reduced=tried)


def _stages(name: str, limit_s: int, words: str, *, cpu: bool = False, **more: Any) -> Step:
    """A step that measures stages."""
    reduced = f"--device {'cpu' if cpu else 'cuda:0'} --reduced --repeats 1 --stages {words}"
    return _script(name, limit_s, "gpu_stages.py", f"--stages {words}", reduced=reduced, cpu=cpu, **more)


_MARKED = [
    str(file) for file in sorted(ROOT.glob("tests/**/test_*.py")) if "pytest.mark.gpu" in file.read_text("utf-8")
]
"""The files with tests for a GPU. Others may need packages that are not here."""
_TESTS = ("-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *_MARKED)
_DOCTOR = ("-c", "from codec_bench.cli import main; main()", "doctor")
_HALF_ON_GPU = "--full --device cuda:0 --precision float16 --backend torch"
_SIX = "--scorers wer,sim,utmos,dnsmos,pesq,stoi"
_SCORERS = ("faster_whisper", "speechmos", "pesq", "pystoi", "av")
FIRST = (
    Step("look", 20, _DOCTOR, ("typer", "rich", *_BASE), anywhere=True, reduced=_DOCTOR),
    Step("tests", 210, _TESTS, ("torch", "pytest")),
    # Half precision first: one by one, float32 takes most of the step's time.
    _stages("encoders", 45, "sim-float16 utmos-float16 sim utmos"),
    _stages("whisper", 80, "whisper-encoder whisper-decoder whisper-torch-encoder whisper-torch-decoder",
            needs=("ctranslate2", "tokenizers"), cpu=True),
    _stages("stages", 55, "dnsmos log-mel mimi-decode mimi-encode dac-decode dac-encode encodec-decode",
            needs=("transformers", "speechmos")),
    _script("model_scorers", 100, "bench_model_scorers.py", f"--utterances 300 --loop 12 {_SIX} {_HALF_ON_GPU}",
            needs=_SCORERS, reduced=f"--utterances 2 --loop 1 {_SIX}", cpu=True),
)  # fmt: skip
SECOND = (
    # As many clips as Seed-TTS's English set has, and as long.
    _script("model_scorers", 110, "bench_model_scorers.py", f"--utterances 1088 --mean-s 4.7 --loop 4 {_HALF_ON_GPU}",
            needs=_SCORERS, reduced="--utterances 2 --loop 1 --mean-s 4.7 --scorers wer,sim --backend torch", cpu=True),
    _script("codecs", 60, "bench_codecs.py", "--full --device cuda:0", needs=("transformers", "av"),
            reduced="--device cuda:0 --codecs dac-16khz --utterances 1 --repeats 1"),
    _script("rvq", 40, "bench_rvq.py", "--device cuda:0 --items 16", needs=("transformers",),
            reduced="--device cuda:0 --items 1 --seconds 0.5 --repeats 1"),
)  # fmt: skip
STEPS = (*FIRST, *SECOND)


@dataclass(frozen=True)
class Outcome:
    """The result of a step: its state, its seconds, and its last line."""

    step: str
    state: str
    seconds: float
    output: str


def run(
    step: Step, environment: dict[str, str], gpu_count: int, *, pretend: bool = False, left_s: float = math.inf,
    reserved_s: float = math.inf,
) -> Outcome:  # fmt: skip
    """Run a step unless it shows nothing here; with `pretend` at reduced size.

    Args:
        left_s: seconds left for it and all later steps. reserved_s: seconds reserved for the later ones.
    """
    missing = ", ".join(name for name in step.needs if find_spec(name) is None)
    reasons = {
        "it has no reduced size": pretend and not step.reduced,
        f"without {missing}": missing,
        "there is no GPU": not gpu_count and not step.anywhere and not pretend,
        "no time is left": left_s < LEAST_S,
    }
    if reason := next((reason for reason, applies in reasons.items() if applies), None):
        return Outcome(step.name, "skipped", 0.0, reason)
    start = time.monotonic()
    limit_s = step.limit_s * PATIENCE if pretend else round(min(left_s, max(step.limit_s, left_s - reserved_s)))
    process = subprocess.Popen(
        [sys.executable, *(step.reduced if pretend else step.words)], cwd=ROOT, env=environment, start_new_session=True,
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit_s)
        state = "done" if process.returncode == 0 else f"failed ({process.returncode})"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with the programs that it has started
        output, _ = process.communicate()
        state = f"ended after {limit_s} s"
    sys.stderr.write(output)
    lines = [line for line in output.splitlines() if line.strip()]
    return Outcome(step.name, state, time.monotonic() - start, lines[-1].strip()[:120] if lines else "")


def main() -> int:
    """Run the steps in order, and print their outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="STEP", choices=sorted({step.name for step in STEPS}))
    parser.add_argument("--pretend", action="store_true", help="tries the steps in a reduced size without a GPU")
    parser.add_argument("--part", type=int, choices=(1, 2), help="only the steps of this part")
    parser.add_argument("--limit-s", type=int, help=f"seconds; {PART_S} for each part by default")
    options = parser.parse_args()
    steps = {None: STEPS, 1: FIRST, 2: SECOND}[options.part]
    limit_s = options.limit_s or PART_S * (1 if options.part else 2)
    end = math.inf if options.pretend else time.monotonic() + limit_s
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    count, outcomes = cuda_count(), []
    chosen = [step for step in steps if not options.only or step.name in options.only]
    reserved_s = sum(step.limit_s for step in chosen)
    for step in chosen:
        sys.stderr.write(f"-- {step.name} ({step.limit_s} s are reserved)\n")
        left_s, reserved_s = end - time.monotonic(), reserved_s - step.limit_s
        outcomes.append(run(step, environment, count, pretend=options.pretend, left_s=left_s, reserved_s=reserved_s))
    width = max(len(outcome.step) for outcome in outcomes)
    for outcome in outcomes:
        print(f"{outcome.step:{width}}  {outcome.state:16} {outcome.seconds:6.1f} s  {outcome.output}")
    return 3 if any(outcome.state not in ("done", "skipped") for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
