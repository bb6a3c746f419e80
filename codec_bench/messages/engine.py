"""Codes of signals, items and stages, which the engine and the store write."""

from __future__ import annotations


def _quoted(names: list[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


SENTENCES = {
    "info": {
        "reference": "{note} in the reference",
        "same_as_reference": "the estimate is the reference, sample by sample",
    },
    "warning": {
        # Of signals.
        "clipped": "{samples} samples beyond full scale were cut",
        "flat_peaks": "{percent:g} % of its samples are flat peaks; the audio was clipped before it was written",
        "same_as_system": "the estimate is that of another system, sample by sample: {system}",
        "silence_around": "{silence_s:.1f} s of silence lie around {sound_s:.1f} s of sound",
        "empty_band": "it holds nothing above {top_khz:.1f} kHz, at a rate of {rate_khz:g} kHz",
        "other_rate": "it has as many samples as its reference, at {rate_khz:g} in place of {reference_khz:g} kHz",
        "empty_channels": "it has audio in {heard:g} of {channels:g} channels",
        "cancelled_channels": "the mean of its {channels:g} channels is {lower_db:.1f} dB below them: they cancel out",
        "folded_channels": "its {channels:g} channels came back as one sound",
        "short_inconclusive": "it is too short to show whether it is the audio of its reference",
        "goes_on_without_device": "{cause}; the run goes on without it",
        # Flags of scores.
        "silent_reference": "a value of a reference that is silent",
        "alignment_unknown": "alignment unknown: this codec may have a short delay, which would move the value",
    },
    "error": {
        # Of signals; also flags of scores.
        "silent": "the audio is silent: no 20 ms of it (the mean of its channels) are louder than -70 dBFS",
        "silent_estimate": "a value of an estimate that is silent",
        "partial": "more than 25% of the reference's loud frames are missing in the estimate",
        "lacking": "the share of loud frames in the estimate is less than 60% of that in the reference",
        "unlike": "the estimate does not follow the levels of its reference: noise, another sound, or a shift in time",
        # Of items and scores.
        "no_score": "the record holds no score",
        "no_reference_audio": "the data names no reference audio for this sample",
        "unreadable": "it cannot be read: {cause}",
        "unreadable_file": "'{path}' cannot be read: {cause}",
        "unusable_row": "{message}",
        "unreadable_audio": "{message}",
        "no_generated_audio": "there is no generated audio for this sample",
        "several_generated": lambda files: f"the generated files {_quoted(files)} could both belong to this sample",
        "several_samples": lambda file, samples: (
            f"the generated file '{file}' could belong to the samples {_quoted(samples)}"
        ),
        "not_loaded": ("the worker process ended ({cause}) while loading '{stage}', and so did the one before it"),
        "failed_on_device": "{stage} was stopped: its first {items} items all failed on '{device}' ({cause})",
        "hung_at_first": (
            "{stage} was stopped: none of the first {items} items came back within its limit of {limit_s:g} s"
        ),
        "hung": "{stage} was stopped: {items} items did not come back within its limit of {limit_s:g} s",
        "not_fetched": "'{path}' could not be fetched",
        "out_of_memory": "out of memory with a batch of one",
        "stage_given_up": "{stage} was stopped: its process died at each of its first {items} items ({cause})",
        "worker_died": lambda stage, cause, times: (
            f"the worker process died{f' {times} times' if times > 1 else ''} ({cause}) while computing {stage}"
        ),
        "time_limit": lambda stage, limit_s, times: (
            f"{stage} took longer than its limit of {limit_s:g} s{', twice' if times > 1 else ''}"
        ),
        # How a process ended.
        "process_device_failed": "its device failed",
        "process_pipe_closed": "the code that it ran closed or replaced its pipe to the main process",
        "process_killed": "killed by signal {signal}",
        "process_exited": "exit code {exit_code}",
        "device_fails": "'{device}' failed {times} times in a row, in new processes too",
        "no_device_left": "{cause}; finished items are recorded",
        "not_loadable": "'{name}' cannot be loaded: {cause}",
        "sound_changed": "the audio '{path}' of sample '{sample}' has changed since '{folder}' was started",
        "sound_missing": "the audio '{path}' of sample '{sample}' cannot be read any more",
        "workers_end_at_start": "worker processes end as soon as they start ({reason})",
        "loading_timed_out": "it did not answer for {limit_s:g} s",
        "no_device": "this machine has no device '{device}'",
        "class_source_unknown": (
            "the run in '{folder}' cannot be continued: the source of the class of '{system}' cannot be read"
        ),
        "device_unusable": "'{device}' cannot be used: {cause}",
    },
}
