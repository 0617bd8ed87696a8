"""Draw and summarise any table of positions: a run of ours, a weights file, a timm ViT, a model on the hub."""

import sys

from vitpos.evaluation.inspect import main

if __name__ == "__main__":
    main(sys.argv[1:])
