"""Models that run in the process of codec-bench."""
