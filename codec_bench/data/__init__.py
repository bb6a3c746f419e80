"""Samples from a name, folder, manifest or the hub, and rows of tables.

Only `identical_audio.py` decodes sound.

Which file to open
    `source.py`      opens whatever `--data` names; `shard.py` is the part of one machine, `pairing.py` generated audio.
    `layouts/`       folders of common toolkits. `convert.py` writes manifests.
    `manifest.py`    JSON lines, CSV, TSV and Parquet; `rows.py` gives rows their ids. `folder.py`, `remote.py` and
                     `tars.py` are folders, URLs and tar files; `archives.py` unpacks archives. `embedded/` is the
                     package's own speech.
    `table.py`       data sets in the hub's layout, row by row: `hub.py` finds them, `layout.py` the splits and files,
                     `parquet.py` and `streamed.py` read them; `cells.py` knows the cells with sound.
    `roles.py`       the role of the audio: prompt, target, or none.
    `columns.py`     columns that break results down; `alignments.py` reads phone times, `trials.py` speaker trials.
"""

from __future__ import annotations

from codec_bench.data.columns import broken_down
from codec_bench.data.identical_audio import sameness
from codec_bench.data.pairing import match_estimates
from codec_bench.data.shard import Shard, read_shard
from codec_bench.data.source import REGISTERED, Source, data_name, open_source, part_of, problem_of
from codec_bench.data.trials import with_trials

__all__ = [
    "REGISTERED",
    "Shard",
    "Source",
    "broken_down",
    "data_name",
    "match_estimates",
    "open_source",
    "part_of",
    "problem_of",
    "read_shard",
    "sameness",
    "with_trials",
]
