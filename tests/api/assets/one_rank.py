"""One process of two: updates a TorchMetric with its part, and prints the value over both."""

import sys

import torch

from codec_bench.torchmetrics import TorchMetric

rank, port, name, path = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
torch.distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
estimate, reference = torch.load(path, weights_only=True)
mine = slice(0, 1) if rank == 0 else slice(1, 3)  # unequal parts: a mean of means would be another value
metric = TorchMetric(name, sample_rate_hz=16_000, device="cpu")
metric.update(estimate[mine], reference[mine])
print(float(metric.compute()))
torch.distributed.destroy_process_group()
