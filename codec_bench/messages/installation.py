"""Codes of checks of an installation, of GPUs, and of definitions against the hub."""

from __future__ import annotations


def _hub_state(size: int | None, revision: str, columns: int, duration_s: float | None, rate_hz: int | None) -> str:
    counted = "an unknown number of" if size is None else f"{size:,}"
    sound = "" if duration_s is None else f"; a sound of {duration_s:g} s at {rate_hz:,} Hz"
    return f"{counted} questions at {revision[:10]}, {columns} columns{sound}"


SENTENCES = {
    "info": {
        # Of the installation.
        "version": "{version}",
        "two_versions": "{torch} and {torchaudio}",
        "installed": "installed",
        "lacks_packages": "without {names}",
        "no_onnxruntime": "none is installed; only some features need one",
        "folders_found": "found",
        "utterances": "{readable} of {utterances} utterances",
        "cache_folder": "{folder}",
        "cache_space": "{folder}, {free_gib:.0f} GiB free",
        "machine": "{cpu}, {cores} cores, {memory_gib} GiB",
        "gpu": "{name}",
        "kernels_compiled": "{seconds:.0f} s",
        # Of GPUs.
        "gpus_of_torch": lambda gpus, version: f"{gpus} GPU{'s' if gpus > 1 else ''}, torch {version}",
        "first_launch": "a first launch gave the right numbers",
        "no_whisper": "not compared: no Whisper is on this machine",
        "same_transcript": "{model} writes the same text: '{text}'",
        # Of the hub and of names.
        "hub_state": _hub_state,
        "data_are_local": "its data are a file next to the definition, not on the hub",
        "data_on_no_hub": "its data are on no hub: {obtain}",
        "not_pinned": "not pinned: {names}",
        "items_finished": "{finished} of {items} items finished",
        "model_facts": "takes {inputs}, gives {outputs}; it was not started",
        "service_ends": "its service: {when}",
        "score_value": "{value:.4g}",
    },
    "warning": {
        "not_writable": "'{folder}' cannot be written",
        "kernels_failed": lambda seconds, failed: f"{seconds:.0f} s; without {'; '.join(failed)}",
        "triton_fault": "{cause}; torch computes in its place, more slowly",
        "other_transcript": "{model} writes '{gpu}' there and '{cpu}' on the CPU",
        "licence_differs": "the card states {hub}; the definition says {definition}",
    },
    "error": {
        "onnxruntimes_clash": (
            "{packages} are both installed and overwrite each other's files, so it is undefined which of them runs"
        ),
        "onnxruntime_files_missing": (
            "the files of {packages} are missing; this happens when another onnxruntime is uninstalled"
        ),
        "no_cuda": "nvidia-smi lists {listed}, and CUDA gives this process none",
        "wrong_product": "a product of matrices is wrong on '{device}'",
        "gpus_not_visible": "it sees {visible} of {gpus}",
        "size_differs": "the data give {hub:,} questions; the definition says {definition:,}",
        "digest_differs": "the questions are not those that the definition pins: {hub}, not {definition}",
        "types_differ": lambda changed: "; ".join(changed),
        "type_differs": lambda column, definition, hub: (
            f"the column '{column}' was {definition} and is {'gone' if hub is None else hub}"
        ),
        "part_failed": "{name}: {cause}",
        "score_without_value": "{status}: {cause}",
    },
}
