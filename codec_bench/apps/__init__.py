"""The applications beside the core: each is a folder with everything that is its own, and the core imports none of
them.

What every application has
    `api.py`      its verb, a function that `codec_bench` exports. `cluster` has none: it is a way to run other verbs.
    `command.py`  what a person types for it.
    `__init__.py` the tables by which the core finds what it adds (`registry.applications`): `COMMANDS`, a
                  `registry.Command` by the name that is typed; `VERBS`, the module of each public function;
                  `EXECUTORS`, by the value of `--executor`.
Its statistics, words, page and files lie beside them. They are `profiling/`, `listening/`, `agreement/`, `judging/`,
`leaderboards/`, `site/`, `building/`, `cluster/`, `conversation/`, `gating/` and `serving/`. Applications import the core. Of each other only
`building` imports `listening`, whose sheets its reviewers fill in, and `site` imports `leaderboards`, which it shows.
"""
