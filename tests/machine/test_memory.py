"""Which errors say that the memory is full, what is given back then, and how several processes share a GPU."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import types
import weakref
from itertools import pairwise

import pytest

from codec_bench.audio.budget import Budget
from codec_bench.engine.worker import run_batch
from codec_bench.machine import memory
from codec_bench.machine.memory import out_of_memory
from codec_bench.messages.errors import DeviceFull, DeviceUnusable

FULL = [
    RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 139 GiB"),
    RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"),
    RuntimeError("CUDA failed with error out of memory"),
    RuntimeError("cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED"),
    RuntimeError("mkl_malloc: failed to allocate memory"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried to allocate"
    ),
    RuntimeError(
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Conv node. "
        "bfc_arena.cc:376 AllocateRawInternal Failed to allocate memory for requested buffer of size 4585490528"
    ),
    RuntimeError(
        "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=x ; expr=cublasCreate(&cublas_handle_);"
    ),
    RuntimeError("std::bad_alloc"),
    MemoryError(),
]
OTHER = [
    RuntimeError("Library libcublas.so.12 is not found or cannot be loaded"),
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
    RuntimeError("out of resource: shared memory, Required: 196608, Hardware limit: 101376"),
    ValueError("4 samples do not fit"),
]


@pytest.mark.parametrize("error", FULL, ids=str)
def test_every_library_says_it_in_its_own_words(error):
    assert out_of_memory(error)


@pytest.mark.parametrize("error", OTHER, ids=str)
def test_other_errors_are_not_mistaken_for_it(error):
    assert not out_of_memory(error)


LATER = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect."
)
DROPPED = [  # as torch, CTranslate2, Triton, ONNX Runtime and cuDNN say it
    f"CUDA error: an illegal memory access was encountered\n{LATER}",
    f"CUDA error: device-side assert triggered\n{LATER}",
    f"CUDA error: unspecified launch failure\n{LATER}",
    f"CUDA error: misaligned address\n{LATER}",
    f"CUDA error: an illegal instruction was encountered\n{LATER}",
    f"CUDA error: invalid program counter\n{LATER}",
    f"CUDA error: hardware stack error\n{LATER}",
    f"CUDA error: the launch timed out and was terminated\n{LATER}",
    f"CUDA error: uncorrectable ECC error encountered\n{LATER}",
    f"CUDA error: uncorrectable NVLink error detected during the execution\n{LATER}",
    f"CUDA error: unknown error\n{LATER}",
    f"CUDA error: context is destroyed\n{LATER}",
    f"CUDA error: invalid device context\n{LATER}",
    f"CUDA error: CUDA-capable device(s) is/are busy or unavailable\n{LATER}",
    f"CUDA error: no CUDA-capable device is detected\n{LATER}",
    f"CUDA error: no kernel image is available for execution on the device\n{LATER}",
    f"CUDA error: the provided PTX was compiled with an unsupported toolchain.\n{LATER}",
    "No CUDA GPUs are available",
    "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable "
    "CUDA_VISIBLE_DEVICES",
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that "
    "might have "
    "already set an error? Error 802: system not yet initialized",
    "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k, &alpha, a, lda, "
    "b, ldb)`",
    "CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasGemmEx( handle, opa, opb, m, n, k, alpha_ptr, a, "
    "CUDA_R_16F)`",
    "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",
    "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
    "CUDA failed with error unspecified launch failure",
    "CUDA failed with error unknown error",
    "cuBLAS failed with status CUBLAS_STATUS_EXECUTION_FAILED",
    "parallel_for failed: cudaErrorUnsupportedPtxVersion: the provided PTX was compiled with an unsupported toolchain.",
    "Triton Error [CUDA]: an illegal memory access was encountered",
    "CUDA driver error: unknown error",
    "CUDA failure 999: unknown error ; GPU=0 ; hostname=x ; file=cuda_stream_handle.cc ; line=216 ; "
    "expr=cudaStreamSynchronize",
    "CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=x ; file=gpu_data_transfer.cc ; "
    "line=73",
    "CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0 ; hostname=x ; file=conv.cc ; line=476",
    "CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0 ; hostname=x ; file=gemm.cc ; line=121 ; "
    "expr=cublasGemmHelper(",
    "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
    "cuda runtime error (4) : unspecified launch failure at THCTensorCopy.cu:85",
    "NVML: Failed to get usage(15): GPU is lost",
    "pynvml.NVMLError_GpuIsLost: GPU is lost",
    "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU",
    "failed to get remapped rows: NVML ERROR_GPU_IS_LOST",
    "NVRM: GPU at PCI:0000:02:00: GPU has fallen off the bus.",
    "GPU lost from the bus [NV_ERR_GPU_IS_LOST]",
    "pynvml.NVMLError_ResetRequired: GPU requires reset",
    "CUDA error: device is lost",
]
NEITHER = [
    f"CUDA error: invalid argument\n{LATER}",
    f"CUDA error: invalid configuration argument\n{LATER}",
    "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmul`",
    "CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle, opa, opb, m, n, k, &alpha, a, lda, b, "
    "ldb)`",
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a non-contiguous input.",
    "cuDNN error: CUDNN_STATUS_BAD_PARAM",
    "Triton Error [CUDA]: invalid argument",
    "out of resource: shared memory, Required: 196608, Hardware limit: 101376. Reducing block sizes or `num_stages` "
    "may help.",
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
    "Library libcublas.so.12 is not found or cannot be loaded",
    "cuBLAS failed with status CUBLAS_STATUS_NOT_SUPPORTED",
    "illegal address in a text",
    "the GPU is too old for this kernel",
    "a frame was lost; the CUDA kernel is not affected",
    "illegal instruction in a text about GPUs",
    "unknown error in the header of the file",
]


@pytest.mark.parametrize("message", DROPPED)
def test_a_device_that_a_process_cannot_use_any_more_is_known_by_its_error(message):
    assert memory.is_device_error(f"RuntimeError: {message}") and not out_of_memory(RuntimeError(message))


@pytest.mark.parametrize("message", [*map(str, FULL), *NEITHER])
def test_other_errors_state_nothing_of_the_device(message):
    assert not memory.is_device_error(f"RuntimeError: {message}")


def test_a_device_works_if_it_gives_the_cpus_numbers(monkeypatch):
    import torch

    assert memory.device_works("cpu")
    assert not memory.device_works("cuda:0"), "there is none, or every call fails"
    right = torch.nn.functional.conv1d
    monkeypatch.setattr(torch.nn.functional, "conv1d", lambda x, w: right(x, w) * (1 + next(turn)))
    turn = iter((0.2, 0.0))  # the device, then the CPU
    assert not memory.device_works("cpu")


def test_torchs_own_errors_are_known_and_so_is_what_an_error_was_raised_from():
    import torch

    assert out_of_memory(torch.OutOfMemoryError("anything"))
    wrapped = ValueError("the codec failed")
    wrapped.__cause__ = torch.OutOfMemoryError("anything")
    assert out_of_memory(wrapped)


@pytest.mark.parametrize("error", FULL[:4], ids=str)
def test_a_worker_knows_them_and_frees_what_the_failed_call_held_before_it_gives_memory_back(error, monkeypatch):
    class Tensor:
        pass

    held, returned = [], []
    monkeypatch.setitem(
        sys.modules,
        "torch",
        types.SimpleNamespace(cuda=types.SimpleNamespace(empty_cache=lambda: returned.append(held[0]() is None))),
    )

    class Stage:
        def run(self, works, segments):
            tensor = Tensor()
            held.append(weakref.ref(tensor))
            raise type(error)(*error.args)

    outcome, *_ = run_batch(Stage, [1, 2], None, "cuda:0")
    assert outcome == "oom" and returned == [True]


def test_a_halved_budget_recovers_and_tries_more_rarely_after_every_failure():
    budget = Budget()
    budget.budget_s, budget.growing = 100.0, True
    failures, fitted = [], []
    for batch in range(100):
        if budget.budget_s > 120.0:
            budget.did_not_fit(budget.budget_s)
            failures.append(batch)
        else:
            budget.fitted(budget.budget_s)
            fitted.append(budget.budget_s)
    assert max(fitted[failures[0] :]) > 90
    gaps = [after - before for before, after in pairwise(failures)]
    assert len(gaps) >= 2 and all(after > 1.5 * before for before, after in pairwise(gaps))


def test_a_budget_that_was_set_recovers_to_what_was_set_and_no_further():
    budget = Budget()
    budget.budget_s, budget.growing = 100.0, False
    budget.fitted(100.0)
    assert budget.budget_s == 100.0
    budget.did_not_fit(100.0)
    assert budget.budget_s == 50.0
    for _ in range(30):
        budget.fitted(budget.budget_s)
    assert budget.budget_s == 100.0


def test_a_budget_is_what_fills_half_of_the_memory_by_the_bytes_of_a_padded_second():
    budget = Budget()
    budget.budget_s, budget.growing = 100.0, True
    budget.measured(10.0, 10_000, 8_000_000)
    assert budget.budget_s == 100.0, "a small batch says little of a large one"
    budget.measured(100.0, 20_000, 8_000_000)
    assert (budget.bytes_per_s, budget.budget_s) == (200.0, 20_000.0)
    budget.fitted(20_000.0)
    assert budget.budget_s == 20_000.0, "it grows no further than the model says"
    budget.measured(10_000.0, 1_000_000, 2_000_000)
    assert budget.budget_s == 5_000.0, "another program has taken memory; the most bytes that were seen count"
    budget.did_not_fit(5_000.0)
    budget.measured(2_500.0, 500_000, 8_000_000)
    assert budget.budget_s == 2_500.0, "the model was wrong: it is not believed at once"
    for _ in range(40):
        budget.fitted(budget.budget_s)
    assert budget.budget_s == 20_000.0


def test_what_a_process_can_still_take_is_bounded_by_the_free_memory_and_by_its_share(monkeypatch):
    import torch

    values = {
        "mem_get_info": (50, 100), "memory_allocated": 10, "memory_reserved": 30, "max_memory_allocated": 17,
        "reset_peak_memory_stats": None, "set_device": None, "set_per_process_memory_fraction": None,
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setattr(torch.cuda, name, lambda *options, value=value: value)
    monkeypatch.setattr(memory, "_shares", {})
    assert memory.room("cuda:0") == 50 + 30 - 10
    memory.own_device("cuda:0", 2)
    assert memory.room("cuda:0") == 100 // 2 - 10
    assert memory.MemoryWatch("cuda:0").seen() == (17 - 10, 40)


def test_attention_by_cudnn_is_off_where_a_process_owns_a_gpu(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        memory.own_device("cuda:0")
        assert not torch.backends.cuda.cudnn_sdp_enabled() and torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(True)


def test_a_process_makes_its_gpu_the_current_one_and_takes_its_share(monkeypatch):
    import torch

    messages = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: messages.append(device))
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *options: messages.append(options))
    memory.own_device("cpu", 4)
    memory.own_device("cuda:1")
    memory.own_device("cuda:0", 2)
    assert messages == ["cuda:1", "cuda:0", (0.5, "cuda:0")]


def test_a_worker_owns_its_device_before_it_builds_its_first_stage(monkeypatch):
    from codec_bench.engine import double_buffer, worker
    from codec_bench.engine.stage import StageSpec

    notices = []
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)

    class Pipe:
        messages = iter([("specs", {"a": StageSpec("a", "feature", ("none",))}), ("facts", "a"), ("facts", "a")])

        def recv(self):
            message = next(self.messages, None)
            if message is None:
                raise EOFError
            return message

        def send(self, message):
            notices.append("facts")

    monkeypatch.setattr(double_buffer, "own_device", lambda *options: notices.append(options))
    monkeypatch.setitem(worker.STAGES, "feature", lambda spec, device: types.SimpleNamespace(facts={}))
    worker.serve(Pipe(), double_buffer.Gpu("cuda:3", 2))
    assert notices == [("cuda:3", 2), "facts", "facts"]


def stages_of_a_full_gpu(monkeypatch, free):
    """The stages of a worker of a GPU: those called `small` fit into its memory."""
    import torch

    from codec_bench.engine import double_buffer, worker
    from codec_bench.engine.stage import StageSpec

    def build(spec, device):
        if spec.names[0] != "small":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return types.SimpleNamespace(facts={}, run=lambda works, segments: (works, {}))

    monkeypatch.setattr(double_buffer, "own_device", lambda *options: None)
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", free)
    monkeypatch.setitem(worker.STAGES, "feature", build)
    stages = worker.Stages(double_buffer.Gpu("cuda:0", 1))
    stages.specs = {name: StageSpec(name, "feature", (name,)) for name in ("small", "large")}
    return lambda key: run_batch(lambda: stages.load(key), [1], None, "cuda:0")[0]


def refused(device):
    raise RuntimeError("CUDA error: out of memory")


@pytest.mark.parametrize(
    ("free", "message"),
    [
        (lambda device: (205 << 20, 139 << 30), "0.2 of 139 GiB are free"),
        (refused, "less is free than CUDA itself needs"),
    ],
)
def test_a_gpu_that_is_full_at_the_first_allocation_is_reported_with_what_is_free(free, message, monkeypatch):
    outcome = stages_of_a_full_gpu(monkeypatch, free)("large")
    assert isinstance(outcome, DeviceFull) and outcome.message == f"'cuda:0' has no room for 'large': {message}"
    assert "--device" in outcome.hint
    assert pickle.loads(pickle.dumps(outcome)).message == outcome.message, "workers send it"


@pytest.mark.parametrize(
    "message",
    ["The NVIDIA driver on your system is too old (found version 11040)", "Torch not compiled with CUDA enabled"],
)
def test_a_device_that_torch_cannot_take_is_reported_once_for_all_items(message, monkeypatch):
    from codec_bench.engine import double_buffer

    def refuses(*options):
        raise RuntimeError(message)

    run = stages_of_a_full_gpu(monkeypatch, refused)
    monkeypatch.setattr(double_buffer, "own_device", refuses)
    outcome = run("small")
    assert isinstance(outcome, DeviceUnusable) and not isinstance(outcome, DeviceFull)
    assert outcome.message == f"'cuda:0' cannot be used: RuntimeError: {message}" and "doctor" in outcome.hint


def test_a_device_that_is_gone_when_it_is_claimed_gets_a_new_process(monkeypatch):
    from codec_bench.engine import double_buffer

    def gone(*options):
        raise RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable")

    run = stages_of_a_full_gpu(monkeypatch, refused)
    monkeypatch.setattr(double_buffer, "own_device", gone)
    assert memory.is_device_error(run("small").reason)


def test_what_does_not_fit_next_to_the_runs_own_networks_is_no_other_programs_fault(monkeypatch):
    run = stages_of_a_full_gpu(monkeypatch, refused)
    assert (run("small"), run("large")) == ([1], "oom")


def test_a_cpu_without_memory_is_no_full_device():
    def full():
        raise MemoryError("2 GiB")

    with pytest.raises(MemoryError, match="2 GiB"):
        memory.placed("'large'", "cpu", full)


def test_workers_of_one_gpu_know_how_many_they_are(monkeypatch):
    from codec_bench.engine import pool

    commands, retained = [], []

    def started(command, pass_fds, **_):
        commands.append(command[-2:])
        retained.append(os.dup(pass_fds[0]))  # the worker's end of the pipe stays open
        return types.SimpleNamespace(poll=lambda: 0, wait=lambda: 0)

    monkeypatch.setattr(pool, "subprocess", types.SimpleNamespace(Popen=started, DEVNULL=subprocess.DEVNULL))
    pool.Pool(["cuda:0", "cuda:1", "cuda:1"], 1, subprocess.DEVNULL).close()
    for handle in retained:
        os.close(handle)
    assert commands == [["cuda:0", "1"], ["cuda:1", "2"], ["cuda:1", "2"], ["cpu", "1"]]
