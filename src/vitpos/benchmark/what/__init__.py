"""What can be measured: one file each, with `measure(settings)`, which returns tables."""
