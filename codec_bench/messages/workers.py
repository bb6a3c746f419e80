"""Codes of programs, isolated environments and their processes."""

from __future__ import annotations

from codec_bench.messages import Sentence


def _end_of(log: str) -> str:
    return f"; the end of its log: {log}" if log else ""


SENTENCES: dict[str, dict[str, Sentence]] = {
    "error": {
        "requirements_or_lock": (
            "expected either 'requirements' or 'lock', and not both; 'requirements: []' is no packages"
        ),
        "worker_not_started": "the worker '{worker}' cannot be started: {cause}",
        "worker_closed": "the worker '{worker}' was closed",
        "worker_reply_unreadable": lambda worker, cause, log: (
            f"the worker '{worker}' sent a message that cannot be read: {cause}{_end_of(log)}"
        ),
        "worker_load_late": lambda worker, limit_s, log: (
            f"the worker '{worker}' did not load within {limit_s} s{_end_of(log)}"
        ),
        "worker_reply_late": lambda worker, limit_s, log: (
            f"the worker '{worker}' did not answer within {limit_s} s{_end_of(log)}"
        ),
        "worker_silent": lambda worker, silence_s, log: (
            f"the worker '{worker}' gave no sign of life for {silence_s:g} s{_end_of(log)}"
        ),
        "worker_stopped": "the worker '{worker}' cannot go on: {cause}",
        "worker_exited": lambda worker, exit_status, log: (
            f"the worker '{worker}' ended with exit status {exit_status}{_end_of(log)}"
        ),
        "worker_killed": lambda worker, signal, log: f"the worker '{worker}' was killed by {signal}{_end_of(log)}",
        "worker_ends_repeatedly": "it ended {times} times in a row and was not started again: {cause}",
        "program_ended": lambda program, ending, output: f"{program} ended with {ending}{output and f': {output}'}",
        "environment_python": "the environment '{environment}' needs Python {python}, which is not on this machine",
        "environment_failed": "the environment '{environment}' cannot be made: uv ended with {status}: {output}",
        "environment_incomplete": "the list of the environment '{environment}' lacks packages: {packages}",
        "environment_not_writable": "the environment '{environment}' cannot be made in '{folder}': {cause}",
        "lock_unreadable": "the lock '{lock}' of the environment '{environment}' cannot be read: {cause}",
        "package_not_pinned": "'{lock}' lists '{line}', which is not pinned to one version",
        "no_program": "'{path}': there is no program '{program}' to run as the {role}",
        "program_stopped": "{program} was stopped after {timeout_s:g} s",
    },
}
