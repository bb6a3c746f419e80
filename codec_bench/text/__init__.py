"""Text as it is compared: named normalisers, and error rates that add up."""
