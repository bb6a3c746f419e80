"""Foreign bytes become samples here and nowhere else: files, URLs, rows of tables and members of tar files.

The room knows arrays and rates alone; `types.Audio.read` makes a sound of them.

Which file to open
    `read.py` takes any of these by its path; `decode.py` decodes bytes and refuses what must not be scored;
    `declared_sizes.py` compares what a file declares with what it holds, and `concatenated_files.py` finds a second
    file behind the first. `table.py` reads the rows of tables, `span.py` parts of sounds, and `remote.py` what is
    behind URLs.
"""
