"""Records to statistics to tables and figures; imports neither torch nor wandb."""
