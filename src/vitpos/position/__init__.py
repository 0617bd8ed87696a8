"""Position modules: one final class per file, all behind the contract in `base`."""

from vitpos.position.base import Geometry, Position, Transfer

__all__ = ["Geometry", "Position", "Transfer"]
