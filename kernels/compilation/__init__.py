"""Compilation of functions for the CPU, shared by all processes."""
