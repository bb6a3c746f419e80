"""Asking: every question is sent to the model, and every answer is written to the record."""
