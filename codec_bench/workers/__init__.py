"""Isolated environments: worker code whose dependencies clash with ours runs with packages of its own.

`spec` reads what an environment holds, `environment` makes it with uv, `host` starts and watches one worker process in it,
`pool` shares work between several, `child` is what runs there, and `wire` is what both sides say to each other.
"""
