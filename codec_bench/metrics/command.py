"""Metrics that a user's program computes from files, such as POLQA tools."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt

from codec_bench.config import fit, load_yaml
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Score
from codec_bench.workers.programs import PLACEHOLDER, filled, find_program, programs_hash, run_program, write_pcm

_NUMBER = r"([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"


class MetricFile(BaseModel):
    """The declarations of a metric file.

    Args:
        program: the program and its arguments with `{estimate}` and for a pair `{reference}`; also `{rate}` (Hz) and
            `{folder}`.
        rate_hz: of both files, 16-bit WAV with one channel.
        kind: `pair`, or `single` for a program that needs no reference.
        value: a regular expression with one group, the number; its last match in the output counts. Default: any
            number.
        timeout_s: seconds for one item.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    version: Literal[1]
    program: Annotated[tuple[str, ...], Field(min_length=1)]
    rate_hz: PositiveInt
    kind: Literal["pair", "single"] = "pair"
    value: str = _NUMBER
    higher_is_better: bool | None = True
    unit: str = ""
    range: tuple[float | None, float | None] = (None, None)
    timeout_s: PositiveFloat = 60.0
    paper: str = ""


class CommandMetric(ItemMetric):
    """A metric computed by the program that a YAML file names.

    A program that fails, exceeds its time or prints no number gives a `failed` score with the reason. The protocol has
    the hash of the file, and of a program and scripts of the user's.

    Raises:
        UserError: the file does not fit its layout, or there is no such program.
    """

    source = "a program of the user's"

    def __init__(self, path: str) -> None:
        self._path = Path(path).expanduser()
        held = self._file = fit(load_yaml(self._path), MetricFile, source=str(self._path))
        used = {name for text in held.program for name in PLACEHOLDER.findall(text)}
        for name in ("estimate", "reference")[: 2 if held.kind == "pair" else 1]:
            if name not in used:
                raise UserError("no_placeholder", path=path, role="program", name=name)
        try:
            groups = re.compile(held.value).groups
        except re.error as error:
            raise UserError("value_not_a_pattern", path=path, cause=error) from error
        if groups != 1:
            raise UserError("value_groups", path=path, groups=groups)
        self._program = find_program(held.program[0], self._path, "metric")
        self.name, self.rate_hz, self.unit, self.paper = self._path.stem, held.rate_hz, held.unit, held.paper
        self.protocol = f"{self.name}/command-{programs_hash(self._path, (held.program,))}"
        mine: Any = self
        mine.kind, mine.higher_is_better, mine.range = held.kind, held.higher_is_better, held.range

    def _score(self, item: Inputs) -> Score:
        """Run the program on one item's files; failed if the program fails."""
        assert item.estimate is not None, "a metric of signals gets them"
        signals = {"estimate": item.estimate}
        if self.kind == "pair":
            signals = dict(zip(("reference", "estimate"), item.pair))
        try:
            return Score.ok(self._measured(signals), self.protocol)
        except UserError as error:
            return Score.failed(error.message, self.protocol)

    def _measured(self, signals: dict[str, np.ndarray]) -> float:
        """Run the program on WAV files of the signals, and read the number that it prints.

        Args:
            signals: `(samples,)` by the name of the placeholder for the file's path.
        """
        held = self._file
        who = f"{self.name}: the program '{Path(self._program).name}'"
        with TemporaryDirectory(prefix="codec-bench-") as folder:
            values = {"rate": str(held.rate_hz), "folder": str(self._path.resolve().parent)}
            for name, signal in signals.items():
                values[name] = str(Path(folder, f"{name}.wav"))
                write_pcm(Path(values[name]), signal[None], held.rate_hz)
            arguments = [self._program, *(filled(text, values) for text in held.program[1:])]
            written = run_program(arguments, Path(folder), who, held.timeout_s)
        matches = re.findall(held.value, written)
        try:
            return float(matches[-1])
        except (IndexError, ValueError):
            raise UserError("program_without_number", program=who, pattern=held.value) from None
