"""Networks that others trained: timm's weights in networks and run folders of ours."""
