"""Which signals of a batch share a pass through a network that pads them to one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

CPU_SAMPLES = 128_000
CPU_SLACK = 1.05
"""On a CPU a pass holds 8 s at 16 kHz and lengths that differ by 5 %: equal lengths are 5 to 40 % quicker together (the
shorter the more), and padding costs what it weighs. Measured with WavLM-like encoders; docs/design/engine.md."""


def passes(lengths: Sequence[int], device: str, budget: int | None = None) -> Iterator[list[int]]:
    """Indices that go through the network together, similar lengths first; every index comes once.

    Args:
        lengths: samples of each signal.
        device: on a GPU a batch is one pass, up to the budget; on a CPU it is split where padding would cost more than
            company saves.
        budget: padded samples of a pass at most, or None for any number. A single signal may be longer.
    """
    on_cpu = not str(device).startswith("cuda")
    most = min(CPU_SAMPLES, budget or CPU_SAMPLES) if on_cpu else budget
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        full = group and most is not None and (len(group) + 1) * length > most
        if full or (group and on_cpu and length > CPU_SLACK * lengths[group[0]]):
            yield group
            group = []
        group.append(index)
    if group:
        yield group
