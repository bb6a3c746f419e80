"""Which signals of a batch go through a network together, when the network pads them to one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SLACK = 1.05
"""By what factor the lengths in one pass may differ on a CPU.

Padding costs as much as real samples, and a batch gains little on a CPU. docs/design/engine.md says how much."""

EIGHT_SECONDS = 128_000
"""In samples at 16 kHz. On a CPU, a speech encoder is not faster with more samples than this in one pass."""


def passes(
    lengths: Sequence[int],
    device: str,
    *,
    most: int | None = None,
    most_on_cpu: int | None = None,
    slack: float | None = SLACK,
) -> Iterator[list[int]]:
    """Groups signals into passes of similar length, the shortest first. Every index is in exactly one group.

    Args:
        lengths: the lengths of the signals, in samples or frames.
        device: `cpu` or `cuda:N`. A GPU takes a batch whole, up to `most`. On a CPU a batch is also split where padding
            would cost more time than a larger pass saves.
        most: padded samples in one pass on a GPU, at most; None for any number. A single signal may be longer.
        most_on_cpu: the same on a CPU.
        slack: by what factor the lengths in one pass may differ on a CPU. None puts each signal in a pass of its own,
            for networks that are not faster on several signals.

    Yields:
        The indices of one pass.
    """
    on_cpu = not str(device).startswith("cuda")
    most = most_on_cpu if on_cpu else most
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        full = most is not None and (len(group) + 1) * length > most
        apart = on_cpu and bool(group) and (slack is None or length > slack * lengths[group[0]])
        if group and (full or apart):
            yield group
            group = []
        group.append(index)
    if group:
        yield group
