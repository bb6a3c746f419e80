"""Samples from a registered name, a folder, a manifest or the Hugging Face hub, and rows of tables. Only
`identical_audio.py` decodes sound.

Which file to open
    `source.py`      whatever `--data` names becomes samples here; `shard.py` is the part of one machine, `pairing.py`
                     generated audio.
    `layouts/`       folders as toolkits leave them. `convert.py` writes manifests.
    `manifest.py`    JSON lines, CSV, TSV and Parquet; `rows.py` gives rows their ids. `folder.py`, `remote.py` and
                     `tars.py` are folders, URLs and tar files; `archives.py` unpacks archives. `embedded/` is the
                     speech that comes with the package.
    `table.py`       data sets in the hub's layout, row by row: `hub.py` finds the place, `layout.py` the splits and
                     files, and `parquet.py` and `streamed.py` read them; `cells.py` knows the cells with sound.
    `roles.py`       what the audio of data is to generated audio: prompt, target, or left out.
    `columns.py`     columns by which results are broken down; `alignments.py` is when each phone is said, `trials.py`
                     which
        recordings are compared by their speakers.
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
