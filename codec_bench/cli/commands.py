"""The core's commands by name; a command's module is imported on use."""

from __future__ import annotations

from collections.abc import Iterator

from codec_bench.config.registry import Command

GROUPS = ("Measure", "Look at results", "Benchmarks", "Many machines", "Housekeeping")
# By group: the name, with a star if common, the function in `codec_bench.cli`, and its docstring's first line.
_TABLE = """
Measure
  *demo            evaluate:demo          Run eight systems on embedded speech, offline.
  *eval            evaluate:evaluate      Send audio through codecs and score what comes out.
  *score           evaluate:score         Score existing audio: synthesis, conversion, codecs.
Look at results
  *report          report:report          Write the page of a run, or one page for several.
  *compare         compare:compare        Compare systems or runs with paired tests.
  *export          report:export          Export scores, a paper's table, or a model card.
  sample-size      compare:sample_size    Estimate how much data shows a difference.
Benchmarks
  *run             run:run                Run benchmarks on models and codecs, and score them.
Many machines
  *merge           record:merge           Merge the runs of all shards into one.
Housekeeping
  *list            names:list_            List the names of one kind of thing.
  *show            names:show             Show everything about one name.
  *doctor          check:doctor           Check the installation.
  *validate        check:validate         Check data, codecs, metrics, benchmarks and models.
  data             data:data_app          Write data of any layout as a manifest.
  *weights         weights:weights_app    List, fetch, verify and locate checkpoints.
  answers          answers:answers_app    List and delete cached answers of models.
  import           imports:import_app     Import results of other toolkits as runs.
  verify-batching  check:verify_batching  Check that results do not depend on the batch.
  verify           record:verify          Check that a run record is intact.
  rescue           record:rescue          Save the intact part of a damaged record.
"""


def _parse_table() -> Iterator[tuple[str, Command]]:
    """Yield name and entry of each command in the table."""
    group = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            name, path, help = line.split(maxsplit=2)
            yield name.lstrip("*"), Command(group, help, f"codec_bench.cli.{path}", name.startswith("*"))
        else:
            group = line


COMMANDS = dict(_parse_table())
