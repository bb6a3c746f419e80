"""A benchmark as it is written: YAML, data and prompts, read and checked."""
