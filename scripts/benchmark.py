"""Speed and memory as ratios: `python scripts/benchmark.py what=step`; `--help` lists the settings."""

import os
import sys

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # PyTorch's profiler, which measures memory, is talkative
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

from vitpos.benchmark.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
