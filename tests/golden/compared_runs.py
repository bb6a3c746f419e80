"""Runs of one metric with values that a test chooses, failures, findings of checks, speakers and bitrates."""

from __future__ import annotations

from codec_bench.messages import Diagnostic
from codec_bench.report.open_run import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

FINDING = {
    "check": "side information",
    "state": "suspect",
    "found": Diagnostic("side_uncounted", bps=3220.0),
    "value": 1.0,
}
SUSPECT = {"side": {"ok": ["contract"], "findings": [FINDING], "unchecked": []}}


def recorded(folder, values, *, higher=True, checks=None, speakers=None, kbps=None, flags=None, **more) -> Run:
    """A run with one metric, `m`, and with bitrates if `kbps` gives them by system. A value that is None is an item
    that failed.

    `flags` says for how many of the first items of a system the value has which flag; `more` are further entries of the
    record.
    """
    metrics = {"m": {"protocol": "m/1", "kind": "pair", "unit": "", "higher_is_better": higher, "aggregate": "mean"}}
    if kbps:
        metrics["bitrate"] = {"protocol": "b/1", "unit": "bps", "higher_is_better": False, "aggregate": "ratio"}
    many = max(map(len, values.values()))
    samples = [Sample(f"s{n:03}", None, speaker=speakers and speakers[n]) for n in range(many)]
    meta = {"data": {"fingerprint": "the same", "name": "data", "samples": many}, "state": "finished"}
    writer = RunWriter(folder, {"of": "a test"})
    writer.begin({name: {} for name in values}, metrics, samples)
    for name, column in values.items():
        for n, value in enumerate(column):
            dropped = value is None
            many_flagged, flag = (flags or {}).get(name, (0, ""))
            detail = {"flag": flag} if n < many_flagged else {}
            scores = {} if dropped else {"m": Score.ok(float(value), "m/1", detail=detail)}
            if kbps and name in kbps and not dropped:
                bits = 2000.0 * kbps[name]
                scores["bitrate"] = Score.ok(bits / 2, "b/1", numerator=bits, denominator=2)
            record = ItemRecord(
                name, samples[n].id, "failed" if dropped else "ok", "gave up" if dropped else None, scores
            )
            writer.write([(n, record)])
    writer.set_meta(**meta, **more, **({"checks": checks} if checks else {}))
    writer.close()
    return Run(folder)
