"""`versa/NAME`: a number of VERSA, by its own code and environment.

`NUMBERS` declares configuration, direction, range and whether a reference is read. Network outputs have no range, since
VERSA bounds none. Options are those of VERSA's classes, or of an entry in its YAML: `versa/srmr[./speech_cpu.yaml]`.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from codec_bench.config import load_yaml
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import MissingExtra, UnknownName, UserError
from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score
from codec_bench.workers import wire
from codec_bench.workers.environment import make_environment, read_env
from codec_bench.workers.host import WorkerEnded, WorkerSettings
from codec_bench.workers.pool import LoopThread, WorkerPool, WorkerReply, device_variables

PREFIX = "versa/"
REVISION = "c398480a"
Range = tuple[float | None, float | None]
ANY: Range = (None, None)
POSITIVE: Range = (0.0, None)
SHARE: Range = (0.0, 1.0)
COSINE: Range = (-1.0, 1.0)
MOS: Range = (1.0, 5.0)
ROUNDING = 1e-6


class Number(NamedTuple):
    """One number of VERSA's report.

    Args:
        configuration: the name of its entry in VERSA's YAML.
        higher_is_better, range: declared here, since VERSA states none. is_pair: whether it reads a reference.
    """

    configuration: str
    higher_is_better: bool | None
    range: Range
    is_pair: bool = True


_CHROMA = [
    f"chroma_{feature}_{distance}_dtw" for feature in ("stft", "cqt", "cens") for distance in ("cosine", "euclidean")
]
NUMBERS: dict[str, Number] = {
    **dict.fromkeys(("sdr", "sir", "sar", "si_snr", "ci_sdr"), Number("signal_metric", True, ANY)),
    **dict.fromkeys(("se_si_snr", "se_sdr", "se_sar", "se_ci_sdr"), Number("se_snr", True, ANY, False)),
    **dict.fromkeys(("mcd", "f0rmse"), Number("mcd_f0", False, POSITIVE)),
    "f0corr": Number("mcd_f0", True, COSINE),
    "pesq": Number("pesq", True, (1.0, 4.65)),
    "stoi": Number("stoi", True, COSINE),
    "estoi": Number("estoi", True, COSINE),
    **dict.fromkeys([*_CHROMA, f"{_CHROMA[0]}_raw"], Number("chroma_alignment", False, POSITIVE)),
    f"{_CHROMA[0]}_log": Number("chroma_alignment", False, ANY),
    "log_wmse": Number("log_wmse", False, ANY),
    "srmr": Number("srmr", True, POSITIVE, False),
    "pysepm_fwsegsnr": Number("pysepm", True, (-10.0, 35.0)),
    **dict.fromkeys(("pysepm_llr", "pysepm_wss", "pysepm_cd"), Number("pysepm", False, POSITIVE)),
    **dict.fromkeys(("pysepm_c_sig", "pysepm_c_bak", "pysepm_c_ovl"), Number("pysepm", True, MOS)),
    **dict.fromkeys(
        ("pysepm_csii_high", "pysepm_csii_mid", "pysepm_csii_low", "pysepm_ncm"), Number("pysepm", True, SHARE)
    ),
    "dpam_distance": Number("dpam", False, ANY),
    "cdpam_distance": Number("cdpam", False, ANY),
    **dict.fromkeys(("singmos", "singmos_v1", "singmos_pro"), Number("pseudo_mos", True, ANY, False)),
    "torch_squim_pesq": Number("squim_no_ref", True, ANY, False),
    "torch_squim_stoi": Number("squim_no_ref", True, ANY, False),
    "torch_squim_si_sdr": Number("squim_no_ref", True, ANY, False),
    "torch_squim_mos": Number("squim_ref", True, ANY),
    "sheet_ssqa": Number("sheet_ssqa", True, ANY, False),
    "vqscore": Number("vqscore", True, ANY, False),
    "pam_score": Number("pam", True, ANY, False),
    "nomad": Number("nomad", False, ANY),
    "noresqa_mos": Number("noresqa", False, (0.0, 4.0)),  # how far below 5: the authors subtract it from 5
    "noresqa_score": Number("noresqa_type_0", True, SHARE),  # the probability that the estimate is the cleaner one
    "asvspoof_score": Number("asvspoof_score", True, ANY, False),
    "speaking_rate": Number("speaking_rate", None, POSITIVE, False),
    "asr_match_error_rate": Number("asr_match", False, POSITIVE),
    "spk_similarity": Number("speaker", True, COSINE),
    "singer_similarity": Number("singer", True, COSINE),
    "emotion_similarity": Number("emo2vec_similarity", True, COSINE),
    **dict.fromkeys(("arousal_emo_vad", "valence_emo_vad", "dominance_emo_vad"), Number("emo_vad", None, ANY, False)),
}
"""Numbers of VERSA's report by name."""
FAMILIES = {"universa": Number("universa", None, ANY, False), "arecho": Number("arecho", None, ANY, False)}
"""Prefixes of names that end as a checkpoint decides."""


class VersaMetric(Metric):
    """A number that VERSA computes in a worker, at the reference's own rate.

    A configuration that VERSA cannot load, an exception of VERSA, or a reply without the number is a failure of the
    item. The environment is created with the first item.

    Args:
        name: `versa/` and the number's name in VERSA's report.
        variant: a YAML file of VERSA with the options; None for VERSA's defaults.

    Raises:
        UnknownName: VERSA has no such number. UserError: the file has no entry of its configuration.
    """

    def __init__(self, name: str, variant: str | None = None) -> None:
        self._key = name.removeprefix(PREFIX)
        family = self._key.partition("_")[0]
        facts = NUMBERS.get(self._key) or (FAMILIES.get(family) if self._key != family else None)
        if facts is None:
            raise UnknownName("metric", name, [PREFIX + number for number in NUMBERS])
        self._configuration, self._options = facts.configuration, _options(facts.configuration, variant)
        digest = hashlib.sha256(self._options.encode()).hexdigest()[:8] if variant else "defaults"
        self.name = name + (f"[{variant}]" if variant else "")
        self.protocol = f"{name}/{REVISION}/{facts.configuration}/{digest}"
        self.source = f"VERSA at {REVISION}, its own code"
        mine: Any = self
        mine.kind = "pair" if facts.is_pair else "single"
        mine.higher_is_better, mine.range = facts.higher_is_better, facts.range

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item, computed by VERSA in the worker process."""
        worker = _worker(self._configuration, self._options)
        if isinstance(worker, Diagnostic):
            return [Score.failed(worker, self.protocol)] * len(batch)
        return [self._read(reply) for reply in worker.ask([self._request(item) for item in batch])]

    def _request(self, item: Inputs) -> dict[str, Any]:
        signals = {"estimate": item.estimate} | ({"reference": item.reference} if self.kind == "pair" else {})
        return {
            role: {"samples": np.ascontiguousarray(signal, np.float32)[None], "sample_rate_hz": item.rate_hz}
            for role, signal in signals.items()
        }

    def _read(self, reply: WorkerReply) -> Score:
        """Read the number from a worker's reply; failed if it is missing or out of range."""
        if reply.reason is not None:
            return Score.failed(reply.reason, self.protocol)
        if (error := reply.answer.get("error")) is not None:
            return Score.failed(Diagnostic("versa_raised", **error), self.protocol)
        value = reply.answer.get("scores", {}).get(self._key)
        if value is None:
            return Score.failed(Diagnostic("versa_without_number", number=self._key), self.protocol)
        low, high = self.range
        if (low is not None and value < low - ROUNDING) or (high is not None and value > high + ROUNDING):
            return Score.failed(Diagnostic("versa_out_of_range", number=self._key, value=value), self.protocol)
        return Score.ok(value, self.protocol)


class _Worker:
    """A worker process for one configuration of VERSA."""

    def __init__(self, configuration: str, options: str) -> None:
        spec = read_env("versa")
        assert spec.code is not None, "the environment names its worker code"
        load = {"configuration": configuration, "options": json.loads(options)}
        settings = WorkerSettings(
            PREFIX + configuration, make_environment(spec).python, spec.code.resolve(), load, spec.variables
        )
        self._loop, self._pool = LoopThread(), WorkerPool(settings, device_variables(1, ["cpu"]))
        # When this process ends, its socket closes, and the guardian ends the worker.
        weakref.finalize(self, self._loop.close, self._pool).atexit = False
        self._loop.run(self._pool.start())

    def ask(self, items: list[dict[str, Any]]) -> list[WorkerReply]:
        """Send items to the worker process in batches; return one reply per item."""
        packed = [wire.pack(item) for item in items]
        batches = [packed[at : at + wire.BATCH_ITEMS] for at in range(0, len(packed), wire.BATCH_ITEMS)]
        return [reply for batch in batches for reply in self._loop.run(self._pool.ask(batch))]


@cache
def _worker(configuration: str, options: str) -> _Worker | Diagnostic:
    """Start the worker of a configuration once; return it, or why it cannot start."""
    try:
        return _Worker(configuration, options)
    except (UserError, MissingExtra, WorkerEnded) as error:
        return of_error(error)


def _options(configuration: str, path: str | None) -> str:
    """Return the options of a VERSA metric as sorted JSON.

    Args:
        configuration: the metric's name in VERSA.
        path: a YAML file of VERSA that has an entry for it; None for the defaults.
    """
    if path is None:
        return json.dumps({"name": configuration})
    entries = load_yaml(path)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == configuration:
            return json.dumps(entry, sort_keys=True)
    raise UserError("no_versa_entry", path=path, name=configuration, hint="name a YAML file of VERSA")
