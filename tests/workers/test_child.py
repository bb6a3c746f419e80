"""How the worker's side handles samples and errors."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.workers import child


def test_tensors_of_any_precision_become_float32():
    torch = pytest.importorskip("torch")
    values = [0.5, -0.25, 0.125]  # exact in every one of these types
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        result = child._sound(torch.tensor(values, dtype=dtype, requires_grad=True))
        assert result.dtype == np.float32 and result.tolist() == [values]
    two = child._sound(torch.tensor([values, values]).T.contiguous().T)
    assert two.flags.c_contiguous and two.tolist() == [values, values]
    with pytest.raises(TypeError, match="int16"):
        child._sound(torch.ones(3, dtype=torch.int16))


def test_an_error_is_one_sentence_with_its_place():
    try:
        compile("a = (", "somewhere.py", "exec")
    except SyntaxError as error:
        assert "\n" not in child.sentence(error) and "never closed" in child.sentence(error)
    try:
        raise ValueError("x" * 100_000)
    except ValueError as error:
        text = child.sentence(error)
    assert len(text) < 2_100 and "test_child.py, line" in text
