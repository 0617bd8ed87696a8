"""Many runs: expanded by Hydra, skipped when finished, executed by joblib, Ray or Slurm."""
