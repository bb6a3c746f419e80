"""One process of two: updates a TorchMetric with its part, and prints the value over both."""

import sys
from datetime import timedelta

import torch

from codec_bench.torchmetrics import TorchMetric


def value(rank, port, name, path):
    """The value over both processes."""
    address, limit = f"tcp://127.0.0.1:{port}", timedelta(minutes=5)
    torch.distributed.init_process_group("gloo", address, timeout=limit, rank=rank, world_size=2)
    try:
        estimate, reference = torch.load(path, weights_only=True)
        mine = slice(0, 1) if rank == 0 else slice(1, 3)  # unequal parts: a mean of means would be another value
        metric = TorchMetric(name, sample_rate_hz=16_000, device="cpu")
        metric.update(estimate[mine], reference[mine])
        return float(metric.compute())
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    print(value(int(sys.argv[1]), *sys.argv[2:]))
