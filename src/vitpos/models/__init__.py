"""The Vision Transformer: the only caller of the position hooks."""
