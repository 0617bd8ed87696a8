"""Position modules: one final class per file, all behind the contract in `base`."""

from vitpos.position.additive import Additive
from vitpos.position.base import Geometry, Position, Transfer

__all__ = ["Additive", "Geometry", "Position", "Transfer"]
