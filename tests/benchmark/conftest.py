"""Silence of PyTorch's profiler, which measures memory."""

import os

os.environ.setdefault("KINETO_LOG_LEVEL", "99")
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
