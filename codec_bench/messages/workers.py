"""Codes of programs, isolated environments and their processes."""

from __future__ import annotations

SENTENCES = {
    "error": {
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
