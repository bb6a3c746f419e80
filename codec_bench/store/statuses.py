"""Groups of scores without a value: whether failures, and their order.

Besides `types.Status`, lists have `no_estimate` (no output of the system) and `not_scored` (no score in the record).
"""

FAILURES = ("failed", "unparsed", "no_estimate", "not_scored")
"""Failures: an item may get the worst value, and tables and pages show these in red."""
UNDEFINED = ("undefined",)
"""The metric has no value for the item, which is no failure."""
NOT_APPLICABLE = ("refused",)
"""The metric is not meant for the item."""
NO_FAILURE = (*UNDEFINED, *NOT_APPLICABLE)
WITHOUT_VALUE = (*FAILURES, *NO_FAILURE)
"""All of them, in the order of lists."""
