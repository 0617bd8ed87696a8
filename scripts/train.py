"""Train one run, or, with -m or an experiment, a sweep. `python scripts/train.py --help` lists the choices."""

import sys

import hydra
from omegaconf import DictConfig

from vitpos.cli import CONFIG_FOLDER, check_arguments
from vitpos.sweep.helper import start_helper


@hydra.main(config_path=str(CONFIG_FOLDER), config_name="train", version_base="1.3")
def main(config: DictConfig) -> None:
    """Run a single job."""
    from hydra.core.hydra_config import HydraConfig

    from vitpos.sweep.single import run_single

    run_single(config, tuple(HydraConfig.get().overrides.task))


if __name__ == "__main__":
    check_arguments(sys.argv[1:])
    if "plan=true" in sys.argv:
        start_helper()
    main()
