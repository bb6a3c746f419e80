"""Which signals of a batch share a pass through a network that pads them to one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SLACK = 1.05
"""On a CPU lengths within 5 % share a pass: equal lengths are 5 to 40 % quicker together in encoders of speech (the shorter
the more), and padding costs what it weighs. docs/design/engine.md."""

EIGHT_SECONDS = 128_000
"""At 16 kHz: beyond, an encoder of speech gains nothing on a CPU from company."""


def passes(
    lengths: Sequence[int],
    device: str,
    *,
    most: int | None = None,
    most_on_cpu: int | None = None,
    slack: float | None = SLACK,
) -> Iterator[list[int]]:
    """Indices that go through the network together, similar lengths first; every index comes once.

    Args:
        lengths: of the signals, in samples or frames.
        device: a GPU takes a batch as it is, up to `most`; on a CPU it is split where padding costs more than company saves.
        most: padded samples of a pass, or None for any number. A single signal may be longer.
        most_on_cpu: the same on a CPU.
        slack: by what factor lengths may differ on a CPU; None for networks that gain nothing there from equal ones either.
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
