"""Foreign bytes become samples here and nowhere else: files, URLs, rows of tables and members of tar files.

`read.py` takes any of these by its path; `decode.py` decodes bytes and refuses what must not be scored. The room knows
arrays and rates alone; `types.Audio.read` makes a sound of them.
"""
