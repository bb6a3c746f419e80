"""The run record: one SQLite file per run. It is written in transactions, and statistics and reports read it."""
