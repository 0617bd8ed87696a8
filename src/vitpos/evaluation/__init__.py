"""What a trained network can do: other sizes, few-shot, diagnostics."""
