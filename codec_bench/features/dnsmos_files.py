"""The two published networks of DNSMOS: files, layout and reader."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra, WeightsError

if TYPE_CHECKING:
    from codec_bench.kernels.dnsmos.ref import DnsmosWeights


@dataclass(frozen=True, slots=True)
class DnsmosNetwork:
    """A network's file, and its operations and shapes in order, which identify it."""

    file: str
    operations: str
    convolutions: tuple[tuple[int, ...], ...]
    dense: tuple[tuple[int, int], ...]


P835 = DnsmosNetwork(
    "sig_bak_ovr.onnx",
    "Conv Conv Conv Relu Conv Relu Conv Relu Conv Relu MaxPool Conv Relu MaxPool Conv Relu MaxPool Conv Relu ReduceMax "
    "MatMul Relu MatMul Relu MatMul",
    (
        *((161, 320, 1), (161, 320, 1), (128, 1, 3, 3), (64, 128, 3, 3), (64, 64, 3, 3), (32, 64, 3, 3)),
        *((32, 32, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3)),
    ),
    ((64, 128), (128, 64), (64, 3)),
)
P808 = DnsmosNetwork(
    "model_v8.onnx",
    "Conv Relu MaxPool Conv Relu MaxPool Conv Relu Conv Relu MaxPool Conv Relu ReduceMax MatMul Relu MatMul Relu "
    "MatMul",
    ((32, 1, 3, 3), (32, 32, 3, 3), (32, 32, 3, 3), (32, 32, 3, 3), (64, 32, 3, 3)),
    ((64, 64), (64, 64), (64, 1)),
)


def folder_of(weights: str | None) -> Path:
    """Find the folder of both files.

    Args:
        weights: a folder; None for that of the installed package.

    Raises:
        MissingExtra: speechmos is not installed and `weights` is None. WeightsError: the folder lacks a file.
    """
    if weights is None:
        spec = importlib.util.find_spec("speechmos")
        if spec is None or spec.origin is None:
            raise MissingExtra("DNSMOS", "speechmos", "embedded")
        return Path(spec.origin).parent / "dnsmos_models"
    folder = Path(weights).expanduser()
    for network in (P835, P808):
        if not (folder / network.file).is_file():
            raise WeightsError(
                "no_file", path=folder / network.file, hint=f"give a folder that holds {P835.file} and {P808.file}"
            )
    return folder


def read_network(path: Path, network: DnsmosNetwork) -> DnsmosWeights:
    """Read the weights of one network from its ONNX file.

    Raises:
        WeightsError: the file cannot be read, or holds another network.
    """
    import onnx
    from onnx import numpy_helper

    from codec_bench.kernels.dnsmos.ref import DnsmosWeights

    try:
        graph = onnx.load(os.fspath(path)).graph
        held = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    except Exception as error:  # a broken file raises whatever the parser meets
        raise WeightsError("not_onnx", path=path, type=type(error).__name__, cause=error) from error
    counted = set(network.operations.split())
    nodes = [node for node in graph.node if node.op_type in counted]
    layers: list[list[np.ndarray | None]] = []
    dense_layers: list[list[np.ndarray | None]] = []
    for node in nodes:
        if node.op_type == "Conv":
            layers.append([held.get(name) for name in node.input[1:]])
        if node.op_type == "MatMul":
            sums = [n for n in graph.node if n.op_type == "Add" and node.output[0] in n.input]
            biases = [held[name] for n in sums for name in n.input if name in held]
            dense_layers.append([held.get(node.input[1]), biases[0] if biases else None])
    convolutions, dense = _complete(layers), _complete(dense_layers)
    shapes = tuple(c[0].shape for c in convolutions), tuple(d[0].shape for d in dense)
    if (
        " ".join(node.op_type for node in nodes) != network.operations
        or shapes != (network.convolutions, network.dense)
        or any(len(layer) != 2 for layer in [*convolutions, *dense] if layer[0].ndim != 3)
    ):
        raise WeightsError(
            "weights_of_another_model", folder=path, difference=Diagnostic("dnsmos_expected", file=network.file)
        )
    # The two convolutions over a signal are the Fourier transform; they have no bias.
    front = [c[0][:, :, 0] for c in convolutions if c[0].ndim == 3]
    return DnsmosWeights(
        [(c[0], c[1]) for c in convolutions if c[0].ndim == 4],
        [(d[0], d[1]) for d in dense],
        (front[0], front[1]) if front else None,
    )


def _complete(layers: Sequence[Sequence[np.ndarray | None]]) -> list[list[np.ndarray]]:
    present = [[tensor for tensor in layer if tensor is not None] for layer in layers]
    return [tensors for tensors, layer in zip(present, layers) if tensors and len(tensors) == len(layer)]
