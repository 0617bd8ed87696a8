"""From the swept settings of a command line to composed jobs."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Mapping, Sequence

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from vitpos.sweep.jobs import Job, make_job

# A sweep has one launcher, one experiment and one folder; these decide about the sweep and cannot differ inside it.
NOT_SWEPT = ("experiment", "launcher", "experiment_name", "output_dir", "plan", "fail_fast", "report")


def expand(
    loader: ConfigLoader, master: DictConfig, params: Mapping[str, str | int | float], arguments: Sequence[str]
) -> Iterator[Job]:
    """Compose every job of a sweep, seeds outermost, so that an interrupted sweep has whole seeds.

    Args:
        loader: Hydra's.
        master: the config of the command itself.
        params: inner sweep of an experiment, `{setting: "a,b,c"}`; the command line wins over it.
        arguments: overrides of the command line.

    Yields:
        The jobs as they are composed; the same run asked for twice comes once.

    Raises:
        ValueError: a setting that cannot be swept, a sweep that is not a list of values, a job that does not compose.
    """
    parser = OverridesParser.create(config_loader=loader)
    texts = [f"{key}={value}" for key, value in params.items()] + list(arguments)
    choices: dict[str, list[str]] = {}
    for override in parser.parse_overrides(texts):
        key = override.get_key_element()
        if not override.is_sweep_override():
            choices[key] = [str(override.input_line)]
            continue
        if key.split(".")[0] in NOT_SWEPT:
            raise ValueError(f"{key} cannot be swept: run one sweep per value")
        if not override.is_discrete_sweep():
            raise ValueError(f"{override.input_line}: give the values as a list, a choice or a range")
        choices[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
    order = sorted(choices, key=lambda key: key != "seed")
    composer, state = Composer(loader, master), HydraConfig.instance()
    before, known = state.cfg, set[str]()
    try:
        for combination in itertools.product(*(choices[key] for key in order)):
            job = composer.job(combination)
            if job.name not in known:
                known.add(job.name)
                yield job
    finally:
        state.cfg = before


class Composer:
    """Composes jobs that differ in few settings fast.

    Hydra reads and merges all files anew for every job. But settings that choose no file are set on the composed
    config in the end, so one composition per combination of files is enough. Whatever is not a plain `key=value` of an
    existing setting takes the long way.
    """

    def __init__(self, loader: ConfigLoader, master: DictConfig) -> None:
        self.loader, self.master = loader, master
        self.parser = OverridesParser.create(config_loader=loader)
        self._parsed: dict[str, Override] = {}
        self._plain: dict[str, bool] = {}
        self._composed: dict[tuple[str, ...], tuple[DictConfig, bytes]] = {}
        self._current: DictConfig | None = None

    def job(self, overrides: tuple[str, ...]) -> Job:
        """Return the job of some overrides.

        Raises:
            ValueError: they do not compose.
        """
        try:
            simple = [text for text in overrides if self._is_value(text)]
            base, content = self._compose(tuple(text for text in overrides if text not in simple))
            composed: DictConfig = pickle.loads(content)  # several times as fast as OmegaConf's own copy
            try:
                for text in simple:
                    override = self._parse(text)
                    OmegaConf.update(composed, override.key_or_group, override.value(), merge=True)
            except OmegaConfBaseException:
                composed = base = self._compose(overrides)[0]  # Hydra says better what is wrong
            if self._current is not base:
                HydraConfig.instance().set_config(base)  # what `${hydra:...}` refers to
                self._current = base
            return make_job(composed, overrides)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise ValueError(f"{' '.join(overrides)}: {error}") from error

    def _compose(self, overrides: tuple[str, ...]) -> tuple[DictConfig, bytes]:
        """Return a composed config, and what can be copied of it: all but the settings of Hydra."""
        if overrides not in self._composed:
            composed = self.loader.load_sweep_config(self.master, list(overrides))
            settings = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
            OmegaConf.set_struct(settings, True)
            self._composed[overrides] = composed, pickle.dumps(settings)
        return self._composed[overrides]

    def _is_value(self, text: str) -> bool:
        """Return whether an override sets an ordinary setting to a plain value."""
        if text not in self._plain:
            override = self._parse(text)
            key = override.key_or_group
            ordinary = override.type == OverrideType.CHANGE and override.package is None and not key.startswith("hydra")
            self._plain[text] = ordinary and not self.loader.get_group_options(key)
        return self._plain[text]

    def _parse(self, text: str) -> Override:
        if text not in self._parsed:
            self._parsed[text] = self.parser.parse_overrides([text])[0]
        return self._parsed[text]
