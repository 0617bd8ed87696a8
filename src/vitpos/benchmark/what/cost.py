"""What the shipped experiments cost, and larger versions of them, on one device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.progress import track

from vitpos.benchmark.clock import Clock
from vitpos.benchmark.cost_model import Shape, Study, loader_rate
from vitpos.benchmark.networks import model_sizes
from vitpos.benchmark.rates import Rates, measure_rates
from vitpos.benchmark.runs import first_job
from vitpos.benchmark.settings import Settings
from vitpos.benchmark.studies import study_of
from vitpos.benchmark.table import Row, Table
from vitpos.cli import CONFIG_FOLDER
from vitpos.data.download import without_fetching

HOUR = 3600.0


@dataclass(frozen=True)
class Larger:
    """An experiment with another network and data set.

    Attributes:
        experiment: file of `conf/experiment`, for its arms and seeds.
        model: file of `conf/model`.
        data: what the images are called.
        image_size: pixels.
        patch_size: pixels.
        classes: labels.
        train_images: per epoch.
        eval_images: validated after each epoch.
        epochs: of a run.
    """

    experiment: str
    model: str
    data: str
    image_size: int
    patch_size: int
    classes: int
    train_images: int
    eval_images: int
    epochs: int

    def study(self, runs: int) -> Study:
        """Return its cost."""
        sizes = model_sizes()[self.model]
        patches, values = (self.image_size // self.patch_size) ** 2, 3 * self.patch_size**2
        shape = Shape(patches, sizes["dim"], sizes["depth"], values, self.classes)
        return Study(runs, shape, self.train_images, self.epochs, self.eval_images)


# Images as the sets' authors count them; epochs as the common recipes have them.
LARGER = (
    Larger("table8", "vit_tiny", "CIFAR-10", 32, 4, 10, 45_000, 5_000, 200),
    Larger("table8", "vit_small", "CIFAR-100", 32, 4, 100, 45_000, 5_000, 200),
    Larger("table8", "vit_tiny", "ImageNet-1k", 224, 16, 1_000, 1_281_167, 50_000, 300),
    Larger("table8", "vit_small", "ImageNet-1k", 224, 16, 1_000, 1_281_167, 50_000, 90),
    Larger("table8", "vit_base", "ImageNet-1k", 224, 16, 1_000, 1_281_167, 50_000, 90),
    Larger("table8", "vit_base", "ImageNet-21k", 224, 16, 21_841, 14_197_122, 50_000, 30),
)


def measure(settings: Settings) -> list[Table]:
    """Return one row per experiment.

    With `flops` nothing is measured; without, the rate is what training steps of each network reach on this machine.
    """
    rows = list(_rows(settings))
    source = f"{settings.flops:.3g} FLOP/s" if settings.flops else "what a few steps of each network reach here"
    note = (
        f"One device at {source}. runs: arms times seeds and other swept settings. pflop: of one run, matrix products "
        "of the network without positions. hours: of one device for all runs. loader: images per second that keep it "
        "busy. Rows of larger data take arms and seeds from table8."
    )
    return [Table("cost", "Cost of the experiments", rows, note)]


def _rows(settings: Settings) -> Iterator[Row]:
    clock = Clock(settings.place, settings.threads)
    counts: dict[str, int] = {}
    for path in track(sorted((CONFIG_FOLDER / "experiment").glob("*.yaml")), description="experiments", transient=True):
        if "from: ???" in path.read_text(encoding="utf-8"):
            continue  # continues a finished run: costs what that run's last epochs cost
        job, counts[path.stem] = first_job([f"experiment={path.stem}"])
        config = job.config
        try:
            with without_fetching():
                study = replace(study_of(config), runs=counts[path.stem])
        except ValueError:
            continue  # its data are not on this machine
        rates = Rates(settings.flops, settings.flops) if settings.flops else measure_rates(config, clock)
        yield _row(path.stem, config["model_name"], config["data_name"], study, rates)
    for larger in LARGER if settings.flops else ():
        study = larger.study(counts[larger.experiment])
        rates = Rates(settings.flops, settings.flops)
        yield _row(larger.experiment, larger.model, f"{larger.data}, {larger.epochs} epochs", study, rates)


def _row(name: str, model: str, data: str, study: Study, rates: Rates) -> Row:
    return {
        "name": name,
        "model": model,
        "data": data,
        "runs": study.runs,
        "gflop_image": study.shape.training_flops / 1e9,
        "train_pflop": study.training_flops / 1e15,
        "eval_pflop": study.evaluation_flops / 1e15,
        "hours": study.seconds(rates.training, rates.forward) / HOUR,
        "loader": loader_rate(study.shape, rates.training),
    }
