"""Import a ViT of timm's as a finished run: timm=NAME, or timm=FILE model=ARCHITECTURE."""

import sys

from vitpos.weights.command import main

if __name__ == "__main__":
    main(sys.argv[1:])
