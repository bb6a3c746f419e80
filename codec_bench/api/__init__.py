"""The commands as functions: one file a verb. `codec_bench` exports them.

Which file to open
    Measuring: `evaluate.py`, `score.py`, `run_benchmark.py`, and `load_metric.py` for metrics without a run
    (`sounds_in_memory.py` reads its arrays and tensors). `executors.py` decides where a run is carried out,
    `metric_groups.py` expands groups of metrics. `tracking.py` follows a run, `trackers.py` are the services.
    Existing runs: `compare.py`, `sample_size.py`, `report.py`, `export.py`, `merge.py`, `import_results.py`;
    `cached_answers.py`. Checking: `doctor.py` with `gpus.py` and `compile_kernels.py`; `validate.py` with
    `check_codec.py` and `hub_check.py`; `verify_batching.py`; `finding.py` is their result.
    Looking up: `list_names.py`, `show.py`, `metric_names.py` and `benchmark_names.py`.
    `read_arguments.py` reads a file of arguments, as `--config` does; `recorded_arguments.py` records those of a call;
    `check_request.py` checks them.
"""
