"""Judges: what a judge's reply says (`replies`)."""
