"""Torch networks that give an item the same result in a batch of unequal lengths as alone.

They work on tensors and lengths. Files, names of models, memory budgets and metrics are handled elsewhere.
"""
