"""Checkpoints: which ones there are, where they are on this machine, and how they are read without running code in
them.

Which file to open
    `catalogue.py` says what an entry of `configs/weights` may hold, such as its repository on each hub. `fetch.py`
    chooses among the sources, each of which has a file: `from_hub.py` (the Hugging Face hub), `from_modelscope.py`,
    `from_files.py` (URLs, a server of plain files, a folder); `placing.py` is what they share. `find.py` has one
    function for the cache of each hub. `origin.py` and `verify.py` say what a file should be. A new hub is added in
    these files, and in `cli/weights.py` and `scripts/write_docs.py`, which show the sources;
    `tests/weights/conftest.py` holds a local server of each hub. `from_packages.py` finds weights in installed
    packages. `download.py` downloads one file from any address. `kmeans.py` reads clusterings. `state.py` and
    `pretrained.py` read checkpoints.
"""

from codec_bench.weights.catalogue import Checkpoint, checkpoint, checkpoint_names
from codec_bench.weights.find import LocalCheckpoint, WeightsMissing, find, find_all, lookup, noting, weights_identity
from codec_bench.weights.state import load_configuration, load_into, load_state, unfilled, without

__all__ = [
    "Checkpoint",
    "LocalCheckpoint",
    "WeightsMissing",
    "checkpoint",
    "checkpoint_names",
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
