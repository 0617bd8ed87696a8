"""Speed and memory of the networks and of whole runs, as ratios measured side by side."""
