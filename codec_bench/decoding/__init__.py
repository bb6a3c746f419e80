"""Decodes foreign bytes: files, URLs, rows of tables and members of tar files.

The room knows arrays and rates alone; `types.Audio.read` returns audio.

Which file to open
    `read.py` reads any of these by its path; `decode.py` decodes bytes and refuses what must not be scored;
    `declared_sizes.py` compares headers with bytes, `concatenated_files.py` finds a second file behind the first.
    `table.py` reads rows of tables, `span.py` parts of files, and `remote.py` URLs.
"""
