"""Data sets: in-memory sets, image folders, synthetic tasks."""
