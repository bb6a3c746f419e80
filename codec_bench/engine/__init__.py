"""The engine: from what was asked to a finished run record, in batches, over workers, however often it is killed."""
