"""Groups the signals of a batch for a network that pads them to one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SLACK = 1.05
"""The largest ratio of lengths in a CPU pass, where padding costs like audio."""

EIGHT_SECONDS = 128_000
"""In samples at 16 kHz. On a CPU, longer speech encoder passes are not faster."""


def passes(
    lengths: Sequence[int],
    device: str,
    *,
    most: int | None = None,
    most_on_cpu: int | None = None,
    slack: float | None = SLACK,
) -> Iterator[list[int]]:
    """Group signals into passes of similar length, the shortest first.

    Args:
        lengths: in samples or frames.
        device: `cpu` or `cuda:N`. A GPU batch is whole up to `most`; a CPU batch is also split where padding costs
            more.
        most: the most padded samples in one pass on a GPU, or None. A single signal may be longer.
        most_on_cpu: the same on a CPU.
        slack: the largest ratio of lengths in one pass on a CPU. None: one signal per pass.

    Yields:
        The indices of one pass.
    """
    on_cpu = not str(device).startswith("cuda")
    most = most_on_cpu if on_cpu else most
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        full = most is not None and (len(group) + 1) * length > most
        separate = on_cpu and bool(group) and (slack is None or length > slack * lengths[group[0]])
        if group and (full or separate):
            yield group
            group = []
        group.append(index)
    if group:
        yield group
