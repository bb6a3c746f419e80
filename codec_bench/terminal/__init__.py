"""What commands share, those of the core and those of the applications.

Which file to open
    `request.py` makes a command of a schema of `config/`; `options.py` holds the parameters that several commands have.
    `groups.py` makes a group of commands. `output.py` prints: tables to stdout, messages to stderr.
    `progress.py` draws the line of progress. `stopping.py` says what is kept when a person presses Ctrl-C.
"""
