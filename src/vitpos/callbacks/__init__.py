"""When to draw and where to send."""
