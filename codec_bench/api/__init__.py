"""What the commands do, as functions: one file a verb. `codec_bench` exports them. `progress.py` shows
how far a run is, for commands and for callers of Python."""
