"""What the commands do, as functions: one file a verb. `codec_bench` exports them.

Which file to open
    Measuring: `evaluate.py`, `score.py`, `run_benchmark.py`, and `load_metric.py` for metrics without a run
    (`sounds_in_memory.py` reads its arrays and tensors).
    `executors.py` says where a run is carried out, `metric_groups.py` what a group of metrics stands for. `tracking.py`
    follows a run, and `trackers.py` tells the services of it. Runs that exist: `compare.py`, `sample_size.py`,
    `report.py`, `export.py`, `merge.py`, `import_results.py`. `cached_answers.py` is what is kept of models for other
    runs. Checking: `doctor.py` with `gpus.py` and `compile_kernels.py`; `validate.py` with `check_codec.py` and `hub_check.py`;
    `verify_batching.py`. `finding.py` is what they find. Looking up: `list_names.py` and `show.py`, with the facts of
    metrics (`metric_names.py`) and of benchmarks (`benchmark_names.py`). `read_arguments.py` reads a file of arguments,
    as `--config` does, and `recorded_arguments.py` gives those of a call for its record; `check_request.py` checks what
    a command would be given.
"""
