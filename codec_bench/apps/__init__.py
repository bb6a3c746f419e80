"""The applications, one folder each; the core imports none of them.

What every application has
    `api.py`      its verb, a function that `codec_bench` exports. `cluster` has none: it runs other verbs.
    `command.py`  its command.
    `__init__.py` the tables for the core (`registry.applications`): `COMMANDS`, a `registry.Command` by its name;
                  `VERBS`, the module of each public function; `EXECUTORS`, by the value of `--executor`.
They are `profiling/`, `listening/`, `agreement/`, `judging/`, `leaderboards/`, `site/`, `building/`, `cluster/`,
`conversation/`, `gating/` and `serving/`. Applications import the core; among them only `building` imports `listening`
(review sheets), and `site` imports `leaderboards`.
"""
