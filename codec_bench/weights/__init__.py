"""Checkpoints: catalogue, download, lookup, and safe reading.

Which file to open
    `catalogue.py` the entries of `configs/weights`. `fetch.py` chooses among the sources: `from_hub.py` (the Hugging
    Face hub), `from_modelscope.py`, `from_files.py` (URLs, a file server, a folder), all on `placing.py`. `find.py`
    looks up local files, with a function per hub cache; `from_packages.py` those of installed packages. `origin.py` and
    `verify.py` check contents. A new hub also needs `cli/weights.py`, `scripts/write_docs.py` and a server in
    `tests/weights/conftest.py`. `download.py` downloads one file. `kmeans.py` reads clusterings. `state.py` and
    `pretrained.py` read checkpoints, `converted.py` caches folded and cast tensors.
"""

from codec_bench.weights.catalogue import Checkpoint, checkpoint, checkpoint_names
from codec_bench.weights.converted import convert_cached
from codec_bench.weights.find import LocalCheckpoint, WeightsMissing, find, find_all, lookup, noting, weights_identity
from codec_bench.weights.state import load_configuration, load_into, load_state, unfilled, without

__all__ = [
    "Checkpoint",
    "LocalCheckpoint",
    "WeightsMissing",
    "checkpoint",
    "checkpoint_names",
    "convert_cached",
    "find",
    "find_all",
    "load_configuration",
    "load_into",
    "load_state",
    "lookup",
    "noting",
    "unfilled",
    "weights_identity",
    "without",
]
