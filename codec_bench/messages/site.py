"""Codes of sites of results."""

from __future__ import annotations

SENTENCES = {
    "error": {
        "audio_mb_below_zero": "audio_mb is {value:g}; expected 0 or more",
        "no_run_to_check": "no run is named to check",
        "site_into_itself": "'{path}' is both the site and the site to add",
        "site_run_lacks": "the run {run} of the site '{site}' lacks {files}",
        "site_facts_changed": "the facts of the run {run} in the site '{site}' are not as a site writes them",
        "site_file_changed": "'{path}.js' is not as a site writes it",
        "no_site_folder": "no folder is named for the site",
        "site_is_file": "'{path}' is a file, and a site is a folder",
        "site_schema": "'{path}' is a site of schema {schema}; this version of codec-bench writes schema {expected}",
        "not_a_site": "'{path}' is no site: it holds no {marker}",
        "folder_of_something_else": "'{path}' holds other files than a site: {files}",
        "site_file_unreadable": "'{path}' is not as a site writes it ({cause})",
        "site_run_changed": "'{path}' is not what a site of this version holds of the run {run}",
    },
}
