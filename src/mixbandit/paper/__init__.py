"""Experiments: one module per figure, table or measurement."""
