"""The run record: one SQLite file per run, written in transactions, read by statistics and reports."""
