"""Restore process state that foreign code changes next to our computations.

Custom code runs in worker processes (`engine/pool.py`). The caller's process imports and builds it for its facts, and
calls it for `load_codec`, `load_metric` and objects that no worker can import.
"""

from __future__ import annotations

import locale
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

Built = TypeVar("Built")
_PATCHED = tuple("numpy numpy.fft numpy.linalg torch torch.fft torch.linalg torch.nn.functional scipy.signal".split())
"""Modules whose functions are restored after foreign code was imported."""
_AUTOCAST_DEVICES = ("cpu", "cuda")


class TorchState(NamedTuple):
    """Default type of torch's tensors, and autocast state and type by device."""

    dtype: Any
    autocast: tuple[tuple[str, bool, Any], ...]

    @classmethod
    def read(cls) -> TorchState | None:
        """The present state; None as long as torch is not imported."""
        torch = sys.modules.get("torch")
        if torch is None:
            return None
        each = [(d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _AUTOCAST_DEVICES]
        return cls(torch.get_default_dtype(), tuple(each))

    def apply(self) -> None:
        """Set it as the state of this thread."""
        torch = sys.modules["torch"]
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        for device, enabled, dtype in self.autocast:
            if (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) != (enabled, dtype):
                torch.set_autocast_enabled(device, enabled)
                torch.set_autocast_dtype(device, dtype)
                torch.clear_autocast_cache()


_left: WeakKeyDictionary[Any, TorchState] = WeakKeyDictionary()
"""The state in which each codec left torch, restored for its next call."""


def end_if_forked(process: int) -> None:
    """End this process if it is a fork of `process` that foreign code did not end."""
    if os.getpid() != process:
        os._exit(0)


@contextmanager
def preserved_torch_state(of: Any = None) -> Iterator[None]:
    """Apply the torch state of an object in the block; restore ours after it.

    Args:
        of: a foreign object; None for code without a state. A fork that returns is ended.
    """
    before, state, process = TorchState.read(), _read_state(of), os.getpid()
    if state is not None:
        state.apply()
    try:
        yield
    finally:
        end_if_forked(process)  # else every further call of it would double the number of processes
        _keep(of, _restored(before))


def build_preserving_torch(make: Callable[[], Built]) -> Built:
    """Build a foreign object, and restore the state of torch."""
    process, before, result = os.getpid(), TorchState.read(), None
    try:
        result = make()
    finally:
        end_if_forked(process)
        _keep(result, _restored(before))
    return result


def _restored(before: TorchState | None) -> TorchState | None:
    """Restore a state; returns the previous one if it differs."""
    now = TorchState.read()
    if now is None:
        return None
    right = before or _initial(now)
    if now == right:
        return None
    right.apply()
    return now


def _keep(of: Any, state: TorchState | None) -> None:
    with suppress(TypeError):  # an object that cannot be hashed, or has no weak references
        if state is not None and of is not None:
            _left[of] = state
        elif of is not None:
            _left.pop(of, None)


def _read_state(of: Any) -> TorchState | None:
    try:
        return _left.get(of) if of is not None else None
    except TypeError:  # it cannot be hashed, or has no weak references
        return None


def _initial(now: TorchState) -> TorchState:
    """The state of a newly imported torch: float32, without autocast."""
    import torch

    return TorchState(torch.float32, tuple((device, False, dtype) for device, _, dtype in now.autocast))


@contextmanager
def preserved_process_state() -> Iterator[None]:
    """Restore what importing and building foreign code changes in this process.

    These are the folder, import path, variables, locale, warnings, signal handlers, numpy's error handling, the state
    of torch, and the functions of numpy, torch and scipy. Random generators stay as they are.
    """
    import numpy as np

    folder, path, variables, places = os.getcwd(), list(sys.path), dict(os.environ), locale.setlocale(locale.LC_ALL)
    filters, errors = list(warnings.filters), np.geterr()
    functions = {name: dict(vars(sys.modules[name])) for name in _PATCHED if name in sys.modules}
    on_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()} if on_main else {}
    try:
        with preserved_torch_state():
            yield
    finally:
        if os.getcwd() != folder:
            os.chdir(folder)
        if sys.path != path:
            sys.path[:] = path
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)
        if locale.setlocale(locale.LC_ALL) != places:
            locale.setlocale(locale.LC_ALL, places)
        if warnings.filters != filters:
            warnings.filters[:] = filters  # type: ignore[index]
        np.seterr(**errors)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        for name, before in functions.items():
            now = vars(sys.modules[name])
            now.update({key: value for key, value in before.items() if now.get(key) is not value})
