"""Common parts of commands, of the core and of the applications.

Which file to open
    `request.py` builds a command from a schema of `config/`; `options.py` shared parameters. `groups.py` groups of
    commands.
    `output.py` prints: tables to stdout, messages to stderr. `progress.py` the progress line. `stopping.py` handles
    Ctrl-C.
"""
