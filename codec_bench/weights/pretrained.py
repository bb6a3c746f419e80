"""Loads transformers models from a folder, without running code in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.weights.state import check_archive


def class_of(name: str) -> Any:
    """Return a class of transformers, or raise UserError if this release lacks it."""
    import transformers

    try:
        return getattr(transformers, name)
    except AttributeError:
        raise UserError(
            "transformers_lacks",
            version=transformers.__version__,
            name=name,
            hint="newer releases have it: pip install --upgrade transformers",
        ) from None


def load_pretrained(model_class: Any, folder: str, facts: Mapping[str, Any], dtype: str = "float32") -> Any:
    """Load a transformers model from a folder and refuse weights that do not fit it.

    safetensors are preferred. A `.bin` file is read with `weights_only`, so no code in it is run.

    Args:
        model_class: the class of transformers.
        facts: the values that the configuration in the folder must have, by key.
        dtype: the name of the type of its weights.

    Raises:
        WeightsError: the configuration is another model's, the file is broken, or tensors do not fit.
    """
    import torch

    for file in sorted(Path(folder).glob("*.bin")):
        check_archive(file)
    try:
        config = model_class.config_class.from_pretrained(folder, local_files_only=True)
        wrong = {
            key: getattr(config, key, None)
            for key, value in facts.items()
            if _differs(getattr(config, key, None), value)
        }
        if not wrong:
            with _quiet():
                net, report = model_class.from_pretrained(
                    folder,
                    config=config,
                    local_files_only=True,
                    output_loading_info=True,
                    ignore_mismatched_sizes=True,  # the report names them, and the error below does too
                    dtype=getattr(torch, dtype),
                )
    except Exception as error:  # a broken file raises anything from ValueError to SafetensorError and UnpicklingError
        reason = str(error).split("\n")[0].split(". ")[0]
        raise WeightsError("weights_not_loaded", folder=folder, type=type(error).__name__, reason=reason) from error
    if wrong:
        says = ", ".join(f"{key} {got} (expected {facts[key]})" for key, got in wrong.items())
        raise WeightsError("weights_of_another_model", folder=folder, difference=says)
    problems = {"missing_keys": "missing", "unexpected_keys": "extra", "mismatched_keys": "reshaped"}
    for key, problem in problems.items():
        names = sorted(str(name) for name in report.get(key) or ())
        if names:
            difference = Diagnostic(f"tensors_{problem}", tensors=len(names), example=names[0])
            raise WeightsError("tensors_wrong", path=folder, difference=difference)
    return net


def _differs(got: Any, expected: Any) -> bool:
    return list(got) != list(expected) if isinstance(expected, (list, tuple)) and got is not None else got != expected


class _quiet:
    """Disables transformers' progress bar and loading report, which is checked here."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._bar, self._level = logging.is_progress_bar_enabled(), logging.get_verbosity()
        logging.disable_progress_bar()
        logging.set_verbosity_error()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        logging.set_verbosity(self._level)
        if self._bar:
            logging.enable_progress_bar()
