"""Tensors to matplotlib figures; knows nothing of training or W&B."""
