"""The run record."""
