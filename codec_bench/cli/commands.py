"""The core's commands by name; a command's module is imported on use."""

from __future__ import annotations

from collections.abc import Iterator

from codec_bench.config.registry import Command

GROUPS = ("Measure", "Look at results", "Benchmarks", "Many machines", "Housekeeping")
# By group: the name, with a star if common, the function in `codec_bench.cli`, and its docstring's first line.
_TABLE = """
Measure
  *demo            evaluate:demo          Run eight systems with embedded speech and metrics, without a network.
  *eval            evaluate:evaluate      Send audio through codecs and score what comes out.
  *score           evaluate:score         Score existing audio: speech synthesis, voice conversion, reconstructions.
Look at results
  *report          report:report          Write the page of a run again, or one page for several runs.
  *compare         compare:compare        Compare systems or runs pair by pair, with intervals and paired tests.
  *export          report:export          Export scores, a table for a paper, or results for a model's repository.
  sample-size      compare:sample_size    Estimate from a pilot run how much data shows a difference.
Benchmarks
  *run             run:run                Run benchmarks: ask models their questions, or code their audio; score both.
Many machines
  *merge           record:merge           Merge the runs of all shards, row for row as one machine would give them.
Housekeeping
  *list            names:list_            List the names of one kind of thing.
  *show            names:show             Show everything about one name.
  *doctor          check:doctor           Check the installation; exits with 2 if something is wrong.
  *validate        check:validate         Check data, codecs, metrics, benchmarks and models; exits with 2 on errors.
  data             data:data_app          Write data of any layout as a manifest.
  *weights         weights:weights_app    Published checkpoints: list, fetch and verify them, and show where they are.
  answers          answers:answers_app    Cached answers of models: list and forget them.
  import           imports:import_app     Import results of other toolkits as runs.
  verify-batching  check:verify_batching  Check that results do not depend on the batch.
  verify           record:verify          Check that a run record is intact; exits with 2 if it is damaged.
  rescue           record:rescue          Save the intact part of a damaged record; the run's command redoes the rest.
"""


def _commands() -> Iterator[tuple[str, Command]]:
    group = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            name, path, help = line.split(maxsplit=2)
            yield name.lstrip("*"), Command(group, help, f"codec_bench.cli.{path}", name.startswith("*"))
        else:
            group = line


COMMANDS = dict(_commands())
