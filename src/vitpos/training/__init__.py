"""From a composed config to a trained network and its record."""
