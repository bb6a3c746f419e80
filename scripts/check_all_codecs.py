"""Run the checks of `validate` on every codec, and print a table of findings.

Each point has a separate process, and another one decodes its codes. Neural codecs have networks of noise, since
published weights are on few machines; `--weights published` takes these, and `--weights random-full` noise in networks
of the published size.

    python scripts/check_all_codecs.py
    python scripts/check_all_codecs.py mimi-8cb opus-12k

The last two columns are seconds of CPU with one thread: of the codec's coding, and of the checks.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HEAD = "| codec | found | unknown | coding, s | checks, s |\n| --- | --- | --- | --- | --- |"


class Timed:
    """A codec, and how many seconds of CPU its calls took."""

    def __init__(self, codec: Any) -> None:
        self._codec, self.took_s = codec, 0.0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._codec, name)
        return self._timed(attribute) if name in ("encode", "decode") else attribute

    def _timed(self, call: Any) -> Any:
        def timed(*arguments: Any) -> Any:
            before = time.process_time()
            try:
                return call(*arguments)
            finally:
                self.took_s += time.process_time() - before

        return timed


def coded(name: str, options: dict[str, Any], codes_path: Path) -> tuple[list[dict[str, Any]], float, float]:
    """Return the findings of a process's steps, and its seconds of coding and checks.

    It writes what the other process decodes.
    """
    from codec_bench import codecs
    from codec_bench.api.check_codec import select_clips
    from codec_bench.codecs.checks import finding, mask_training_checks
    from codec_bench.codecs.checks.steps import Checking, CheckJob
    from codec_bench.config.limits import Limits

    codec = Timed(codecs.load_codec(name, **options))
    codecs.load_codec = lambda *arguments, **more: codec  # the step `load` asks for it by this name
    steps = [step for step in CheckJob.SECTIONS if step != "elsewhere"]
    began = time.process_time()
    checking = Checking(CheckJob(name, select_clips(), "cpu", Limits(threads=1), tuple(steps), options), lambda: None)
    findings = []
    for step in steps:
        for section in checking.sections(step).values():
            findings += section.get("findings", [])
            if section["state"] == "failed":
                findings.append(finding(step, "failed", section["reason"]))
    if checking.serialised is not None:
        checking.serialised.write(codes_path)
    checks_s = time.process_time() - began - codec.took_s
    return mask_training_checks(findings) if options else findings, codec.took_s, checks_s


def decoded(name: str, options: dict[str, Any], codes_path: Path) -> list[dict[str, Any]]:
    """The finding of a process that has not encoded."""
    from codec_bench.codecs import load_codec
    from codec_bench.codecs.checks.serialised_codes import SerialisedCodes, unpack

    return [unpack(load_codec(name, **options), SerialisedCodes.read(codes_path))] if codes_path.exists() else []


def main() -> None:
    """Run all points, or those on the command line; 1 if one fails."""
    from codec_bench.codecs import list_codecs
    from codec_bench.codecs.checks import faulty_findings

    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="operating points; all if none is named")
    parser.add_argument("--weights", default="random", help="random, random-full or published")
    arguments = parser.parse_args()
    neural = {row.name: row.weights_here is not None for row in list_codecs()}
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "transformers"])
    faults = 0
    print(HEAD, flush=True)
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, context, max_tasks_per_child=1) as processes:
        for name in arguments.names or neural:
            noise = neural.get(name, True) and arguments.weights != "published"
            options = {"weights": arguments.weights} if noise else {}
            codes_path = Path(folder) / f"{name}.npz"
            findings, coding_s, checks_s = processes.submit(coded, name, options, codes_path).result()
            findings += processes.submit(decoded, name, options, codes_path).result()
            bad = [f"{f['check']}: {f['found']}" for f in faulty_findings(findings)]
            not_applicable = dict.fromkeys(f["check"] for f in findings if f["state"] == "not applicable")
            faults += bool(bad)
            cells = name, "; ".join(bad) or "nothing", ", ".join(not_applicable), f"{coding_s:.1f}", f"{checks_s:.1f}"
            print(f"| {' | '.join(cells)} |", flush=True)
    sys.exit(bool(faults))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
