"""Tables of positions from every origin, and what is said about them."""

import json
import pickle

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from safetensors.torch import save_file

from vitpos.cli import CONFIG_FOLDER
from vitpos.evaluation.inspect import inspect, main, parse
from vitpos.evaluation.inspect_files import as_table, find_table, open_weights
from vitpos.evaluation.inspect_source import open_source
from vitpos.evaluation.inspect_summary import effective_rank, similarity_by_distance, strongest_period, structure
from vitpos.evaluation.portrait import Drawing
from vitpos.position import Geometry
from vitpos.spec import ImageSpec
from vitpos.training.build import build_model

TABLE = torch.randn(25, 16, generator=torch.Generator().manual_seed(0))
SIX = {"table", "curves", "similarities", "sinusoid", "sinusoid_curves", "tiles"}


@pytest.fixture
def run_folder(tmp_path):
    """A finished run of ours, as far as `inspect` looks."""

    def make(position_name):
        with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
            position = compose(f"position/{position_name}").position
        model = {
            "_target_": "vitpos.models.vit.ViT",
            "_partial_": True,
            **{"patch_size": 2, "dim": 32, "depth": 2, "pool": "cls"},
            "block": {"_target_": "vitpos.models.block.Block", "_partial_": True, "heads": 2},
        }
        network = {"seed": 0, "model": model, "position": OmegaConf.to_container(position)}
        built = build_model(network, ImageSpec((8, 12), 1, 4))
        folder = tmp_path / f"{position_name}-s0-00000000"
        (folder / "checkpoints").mkdir(parents=True)
        content = {
            "hyper_parameters": {"network": network, "spec": {"image_size": [8, 12], "channels": 1, "classes": 4}},
            "state_dict": {f"model.{name}": value for name, value in built.state_dict().items()},
        }
        torch.save(content, folder / "checkpoints" / "best.ckpt")
        return folder

    return make


class TestFiles:
    def test_reads_every_format(self, tmp_path):
        save_file({"a.pos_embed": TABLE[None]}, tmp_path / "x.safetensors")
        torch.save({"state_dict": {"a": {"pos_embed": TABLE[None]}}, "epoch": 3}, tmp_path / "x.pth")
        torch.save({"a.pos_embed": torch.nn.Parameter(TABLE[None])}, tmp_path / "x.bin")
        np.savez(tmp_path / "x.npz", **{"a/pos_embed": TABLE[None].numpy()})
        np.save(tmp_path / "x.npy", TABLE[None].numpy())
        for path in sorted(tmp_path.iterdir()):
            weights = open_weights(path)
            name = find_table(weights)
            assert torch.equal(as_table(weights.read(name), name)[0], TABLE), path.name

    def test_a_pickle_that_is_code_is_refused_and_not_run(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (open, (str(tmp_path / "run"), "w"))

        (tmp_path / "x.bin").write_bytes(pickle.dumps({"wpe.weight": Bomb()}))
        np.save(tmp_path / "x.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
        for name in ("x.bin", "x.npy"):
            with pytest.raises(ValueError, match="refused"):
                open_weights(tmp_path / name)
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("name", ["x.safetensors", "x.pth", "x.npy", "x.npz"])
    def test_a_damaged_file_is_named(self, tmp_path, name):
        (tmp_path / name).write_bytes(b"damaged")
        with pytest.raises(ValueError, match=name):
            open_weights(tmp_path / name)

    def test_other_endings_are_refused(self, tmp_path):
        (tmp_path / "x.h5").touch()
        with pytest.raises(ValueError, match=r"\.safetensors.*not '\.h5'"):
            open_weights(tmp_path / "x.h5")

    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["wte.weight", "wpe.weight", "h.0.ln.weight"], "wpe.weight"),
            (["transformer.wpe.weight", "lm_head.weight"], "transformer.wpe.weight"),
            (
                ["embeddings.position_embeddings.weight", "embeddings.position_ids"],
                "embeddings.position_embeddings.weight",
            ),
            (["Transformer/posembed_input/pos_embedding", "cls"], "Transformer/posembed_input/pos_embedding"),
            (["pos_embed", "blocks.0.norm1.weight"], "pos_embed"),
        ],
    )
    def test_guesses_the_usual_names(self, tmp_path, names, expected):
        save_file({name: torch.zeros(3, 2) for name in names}, tmp_path / "x.safetensors")
        assert find_table(open_weights(tmp_path / "x.safetensors")) == expected

    def test_several_or_no_tables_ask_for_a_key(self, tmp_path):
        save_file({f"{part}.pos_embed": torch.zeros(3, 2) for part in "ab"}, tmp_path / "two.safetensors")
        with pytest.raises(ValueError, match=r"several position tables.*\n  a.pos_embed  3x2\n  b.pos_embed"):
            find_table(open_weights(tmp_path / "two.safetensors"))
        save_file({"head.weight": torch.zeros(3, 2), "head.bias": torch.zeros(3)}, tmp_path / "none.safetensors")
        with pytest.raises(ValueError, match=r"choose with key=.*\n  head.bias  3\n  head.weight  3x2"):
            find_table(open_weights(tmp_path / "none.safetensors"))

    def test_a_wrong_key_lists_what_is_there(self, tmp_path):
        save_file({"wpe.weight": torch.zeros(3, 2)}, tmp_path / "x.safetensors")
        with pytest.raises(ValueError, match=r"key='pos' is not in .*\n  wpe.weight  3x2"):
            find_table(open_weights(tmp_path / "x.safetensors"), "pos")

    @pytest.mark.parametrize(
        ("tensor", "problem"),
        [
            (torch.zeros(5), r"\(5,\) is no table"),
            (torch.zeros(2, 3, 4, 5), "is no table"),
            (torch.zeros(1, 6), "is no table"),
            (torch.arange(6).reshape(3, 2), "torch.int64"),
            (torch.full((3, 2), torch.nan), "NaN"),
        ],
    )
    def test_refuses_what_is_no_table(self, tensor, problem):
        with pytest.raises(ValueError, match=problem):
            as_table(tensor, "x")

    def test_a_table_on_a_grid_says_so(self):
        table, grid = as_table(torch.arange(24.0).reshape(1, 2, 3, 4), "pos_embed")
        assert grid == (2, 3) and table[1].tolist() == [4, 5, 6, 7]


class TestSources:
    def test_a_name_that_is_nothing_fails_clearly_without_network(self, monkeypatch):
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(ValueError, match=r"nobody/nothing: .*without a network give a file"):
            open_source("nobody/nothing")
        with pytest.raises(ValueError, match=r"Invalid pretrained tag \(none\).*augreg_in21k"):
            open_source("vit_tiny_patch16_224.none")

    def test_an_unreachable_hub_is_not_tried_again_and_again(self, monkeypatch):
        import huggingface_hub
        from huggingface_hub import constants

        def unreachable():
            raise ConnectionError

        monkeypatch.setattr(huggingface_hub, "get_session", unreachable)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        with pytest.raises(ValueError, match="can't be fetched"):
            open_source("gpt2-of-nobody")
        assert constants.HF_HUB_OFFLINE is False

    def test_hub_model_whole_or_in_shards(self, tmp_path, monkeypatch):
        import huggingface_hub
        from huggingface_hub import constants
        from huggingface_hub.errors import EntryNotFoundError

        save_file({"wpe.weight": TABLE}, tmp_path / "part2.safetensors")
        index = {"weight_map": {"wte.weight": "part1.safetensors", "wpe.weight": "part2.safetensors"}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))

        def download(repo, name):
            if not (tmp_path / name).exists():
                raise EntryNotFoundError(name)
            return str(tmp_path / name)

        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
        sharded = open_source("owner/model")
        assert (sharded.name, sharded.key) == ("owner--model", "wpe.weight")
        assert torch.equal(sharded.table, TABLE)
        save_file({"wpe.weight": 2 * TABLE}, tmp_path / "model.safetensors")
        assert torch.equal(open_source("owner/model").table, 2 * TABLE)

    def test_timm_model_knows_grid_and_prefix(self, monkeypatch):
        import timm

        create = timm.create_model
        monkeypatch.setattr(timm, "create_model", lambda name, pretrained=False: create(name, img_size=(32, 64)))
        source = open_source("vit_tiny_patch16_224")
        assert (source.grid, source.prefix, source.table.shape) == ((2, 4), 1, (9, 192))

    def test_timm_model_without_table_says_so(self):
        with pytest.raises(ValueError, match="no pos_embed table"):
            open_source("vit_small_patch16_rope_224")

    def test_missing_file_and_unfinished_run(self, tmp_path):
        with pytest.raises(ValueError, match="no such file"):
            open_source(str(tmp_path / "x.bin"))
        with pytest.raises(ValueError, match="not a finished run"):
            open_source(str(tmp_path))

    def test_run_of_ours(self, run_folder):
        source = open_source(str(run_folder("learned_1d")))
        assert (source.key, source.grid, source.prefix, source.table.shape) == ("stem", (4, 6), 1, (25, 32))
        with pytest.raises(ValueError, match="adds tables at layer 0, layer 1"):
            open_source(str(run_folder("learned_1d_every")), "layer 7")


class TestSummary:
    def test_effective_rank(self):
        assert effective_rank(torch.eye(7, 9)) == pytest.approx(7)
        assert effective_rank(torch.ones(7, 9)) == pytest.approx(1, abs=1e-3)
        assert effective_rank(torch.zeros(7, 9)) == 0

    @pytest.mark.parametrize("period", [5, 8, 14.5])
    def test_period(self, period):
        angle = 2 * torch.pi * torch.arange(200.0) / period
        table = torch.stack([angle.cos(), angle.sin()], 1)
        found, strength = strongest_period((table @ table.T).double().numpy())
        assert found == pytest.approx(period, rel=0.03)
        assert strength > 0.9

    def test_period_of_a_raster_is_its_width(self, position):
        table = position("sincos_2d")(geometry=Geometry((12, 9), 0, 32, 2, 1)).embed(torch.zeros(1, 108, 32))[0]
        similarity = torch.nn.functional.cosine_similarity(table[:, None], table[None], dim=-1).double().numpy()
        assert strongest_period(similarity)[0] == pytest.approx(9, rel=0.03)

    def test_no_period_where_there_is_none(self):
        assert strongest_period(np.ones((40, 40))) == (None, None)
        assert strongest_period(np.eye(5)) == (None, None)

    def test_similarity_by_distance(self):
        line = similarity_by_distance(np.array([[1, 0.5, 0.1], [0.5, 1, 0.3], [0.1, 0.3, 1]]), None)
        assert line == {"distance": [0, 1, 2], "similarity": [1.0, 0.4, 0.1]}
        grid = similarity_by_distance(np.ones((12, 12)), (3, 4))
        assert grid["distance"] == [0, 1, 2, 3, 4]

    def test_structure_of_a_factorised_table(self):
        rows, columns = torch.randn(5, 1, 8, dtype=torch.float64), torch.randn(1, 7, 8, dtype=torch.float64)
        found = structure((rows + columns).reshape(35, 8), (5, 7), seed=0)["additive"]
        assert found["score"] == pytest.approx(1)
        assert found["shuffled_max"] < 0.6

    def test_structure_of_a_kernel_of_offsets(self, position):
        table = position("sincos_2d")(geometry=Geometry((5, 7), 0, 32, 2, 1)).embed(torch.zeros(1, 35, 32))[0]
        found = structure(table.double(), (5, 7), seed=0)["offset"]
        assert found["score"] == pytest.approx(1)
        assert found["shuffled_max"] < 0.5

    def test_structure_of_noise_is_that_of_chance(self):
        found = structure(torch.randn(35, 512, dtype=torch.float64), (5, 7), seed=0)
        assert found["additive"]["score"] == pytest.approx((5 + 7 - 2) / 34, abs=0.05)
        assert found["additive"]["shuffled_mean"] == pytest.approx((5 + 7 - 2) / 34, abs=0.03)
        assert found["offset"]["score"] < 2 * found["offset"]["shuffled_mean"] < 0.2


@pytest.fixture(scope="module")
def inspected(tmp_path_factory):
    """Everything written about a table on a grid."""
    folder = tmp_path_factory.mktemp("inspected")
    np.save(folder / "x.npy", TABLE.numpy())
    return folder / "out", inspect(str(folder / "x.npy"), prefix=1, grid=(4, 6), out=folder / "out")


@pytest.fixture
def drawn(monkeypatch):
    """Collect the numbers of figures instead of writing them."""
    found = {}
    monkeypatch.setattr(Drawing, "save", lambda self, path: found.update({path.name: self.arrays}) or [])
    return found


@pytest.fixture
def npy(tmp_path):
    np.save(tmp_path / "x.npy", TABLE.numpy())
    return str(tmp_path / "x.npy")


class TestInspect:
    def test_six_figures_and_a_summary(self, inspected):
        folder, summary = inspected
        assert set(summary["figures"]) == SIX
        assert {path.name for path in folder.iterdir()} == {
            *(f"{name}.{ending}" for name in SIX for ending in ("png", "svg", "npz")),
            "summary.json",
        }
        assert json.loads((folder / "summary.json").read_text()) == summary
        assert summary["grid"] == [4, 6] and len(summary["prefix_similarity"]) == 1
        for part in ("Effective rank", "Row norms", "row part plus a column part", "prefix rows"):
            assert part in " ".join(summary["words"])
        with np.load(folder / "tiles.npz") as numbers:
            expected = torch.nn.functional.cosine_similarity(TABLE[1:, None], TABLE[None, 1:], dim=-1)
            assert np.allclose(numbers["tiles"], expected.reshape(1, 4, 6, 4, 6), atol=1e-5)

    def test_dimensions_follow_the_seed(self, npy, drawn, tmp_path):
        chosen = []
        for seed in (3, 3, 4):
            inspect(npy, seed=seed, out=tmp_path / "out")
            chosen.append(drawn["curves"]["dimensions"].tolist())
            assert chosen[-1] == drawn["sinusoid_curves"]["dimensions"].tolist()
        assert chosen[0] == chosen[1] != chosen[2]

    def test_sinusoid_of_the_same_shape(self, npy, drawn, tmp_path):
        inspect(npy, out=tmp_path / "out")
        table = drawn["sinusoid"]["table"]
        for place, dimension in ((0, 0), (7, 4), (24, 15)):
            angle = place / 10000 ** (2 * (dimension // 2) / 16)
            expected = np.cos(angle) if dimension % 2 else np.sin(angle)
            assert float(table[place, dimension]) == pytest.approx(expected, abs=1e-6)

    def test_without_a_grid_no_tiles(self, npy, drawn, tmp_path):
        summary = inspect(npy, out=tmp_path / "out")
        assert set(summary["figures"]) == set(drawn) == SIX - {"tiles"}
        assert "grid is unknown" in " ".join(summary["words"])

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"grid": (5, 6)}, "30 patches, the table 25 rows"),
            ({"grid": (4, 5), "prefix": 2}, "make 22 rows, the table has 25"),
            ({"prefix": 2}, "no square grid"),
            ({"prefix": 25}, "no square grid"),
            ({"prefix": 40}, "no square grid"),
        ],
    )
    def test_grids_that_do_not_fit(self, npy, tmp_path, settings, problem):
        with pytest.raises(ValueError, match=problem):
            inspect(npy, out=tmp_path / "out", **settings)
        assert not (tmp_path / "out").exists()

    def test_square_grid_behind_a_given_prefix(self, npy, drawn, tmp_path):
        assert inspect(npy, prefix=0, out=tmp_path / "out")["grid"] == [5, 5]

    def test_run_without_a_table_draws_its_kernel_and_says_so(self, run_folder, drawn, tmp_path):
        summary = inspect(str(run_folder("rope_axial")), out=tmp_path / "out")
        assert summary["figures"] == list(drawn) == ["kernel"]
        assert "adds no table" in summary["words"][0] and "kernel" in summary["words"][1]

    def test_run_with_a_table_and_without_anything(self, run_folder, drawn, tmp_path):
        summary = inspect(str(run_folder("learned_1d")), out=tmp_path / "out")
        assert set(summary["figures"]) == SIX - {"tiles"} | {"similarity"}
        summary = inspect(str(run_folder("none")), out=tmp_path / "out2")
        assert summary["figures"] == [] and "nothing to draw" in summary["words"][1]
        with pytest.raises(ValueError, match="leave both out"):
            inspect(str(run_folder("sincos_2d")), grid=(5, 5), out=tmp_path / "out3")

    def test_run_on_another_grid(self, npy, run_folder, drawn, tmp_path):
        summary = inspect(str(run_folder("rope_axial")), to=(6, 6), out=tmp_path / "out")
        assert summary["figures"] == ["kernel", "resize"]
        assert drawn["resize"]["after_0"].shape == (6, 6)
        with pytest.raises(ValueError, match="only a run of ours"):
            inspect(npy, to=(6, 6), out=tmp_path / "out2")

    def test_large_tables_are_thinned(self, npy, drawn, tmp_path, monkeypatch):
        monkeypatch.setattr("vitpos.evaluation.inspect.MOST_DRAWN", 10)
        inspect(npy, out=tmp_path / "out")
        assert drawn["similarities"]["positions"].shape == (9, 9)
        assert drawn["similarities"]["dimensions"].shape == (8, 8)


class TestCommandLine:
    def test_parse(self):
        assert parse(["source=a=b", "grid=4x6", "prefix=1", "seed=7", "limit=0.2"]) == {
            **{
                "source": "a=b",
                "key": "",
                "grid": (4, 6),
                "prefix": 1,
                "seed": 7,
                "limit": 0.2,
                "to": None,
                "out": None,
            }
        }
        assert parse(["source=x", "grid=[4, 6]"])["grid"] == (4, 6)
        assert parse(["source=x"])["prefix"] is None

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ([], "source= is missing"),
            (["gpt2"], "'gpt2': not understood"),
            (["source=x", "colour=red"], "not understood"),
            (["source=x", "grid=14"], "grid=14: give rows and columns"),
            (["source=x", "grid=0x4"], "grid=0x4"),
            (["source=x", "to=a"], "to=a: give rows and columns"),
            (["source=x", "prefix=-1"], "prefix=-1"),
            (["source=x", "seed=one"], "seed=one"),
            (["source=x", "limit=0.2.1"], "limit=0.2.1"),
        ],
    )
    def test_mistakes_are_named(self, arguments, problem):
        with pytest.raises(ValueError, match=problem):
            parse(arguments)

    def test_main_prints_words_or_the_problem(self, npy, drawn, tmp_path, capsys):
        main([f"source={npy}", f"out={tmp_path / 'out'}"])
        assert capsys.readouterr().out.startswith("25 positions of 16 dimensions.\n")
        with pytest.raises(SystemExit, match="no such file"):
            main(["source=missing.npy"])
