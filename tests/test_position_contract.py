"""The position contract, held against every file of conf/position.

A new module is covered by its YAML file alone. Each test names the rule of the contract that it checks.
"""

import copy
import inspect
from functools import partial
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.utils import get_class, instantiate
from omegaconf import DictConfig, OmegaConf

from vitpos.models.block import Block
from vitpos.models.vit import ViT
from vitpos.position import Geometry, Transfer
from vitpos.spec import ImageSpec
from vitpos.training.optim import parameter_groups

CONF = Path(__file__).parents[1] / "conf"
NAMES = sorted(file.stem for file in (CONF / "position").glob("*.yaml"))
GRIDS = {"square": (4, 4), "rectangle": (3, 5)}
ELSEWHERE = (6, 2)
PREFIXES = {0: {"pool": "mean"}, 1: {"pool": "cls"}, 5: {"pool": "mean_beside_cls", "registers": 4}}
DIM, HEADS, DEPTH, PATCH = 32, 2, 3, 2
RASTER = ("sincos_1d",)  # numbers patches along the rows of the present grid
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def load(name: str) -> DictConfig:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose(f"position/{name}").position


CONFIGS = {name: load(name) for name in NAMES}


def position(name, settings=(), grid=(3, 5), prefix=1, dim=DIM, heads=HEADS, depth=DEPTH):
    geometry = Geometry(grid=grid, prefix=prefix, dim=dim, heads=heads, depth=depth)
    return instantiate(CONFIGS[name], **dict(settings))(geometry=geometry)


def vit(name, grid=(3, 5), prefix=1, seed=0, strong=True):
    """Build a small network; with `strong`, positions matter visibly although nothing is trained."""
    torch.manual_seed(seed)
    spec = ImageSpec((grid[0] * PATCH, grid[1] * PATCH), 3, 10)
    block = partial(Block, heads=HEADS)
    model = ViT(
        spec, instantiate(CONFIGS[name]), patch_size=PATCH, dim=DIM, depth=DEPTH, block=block, **PREFIXES[prefix]
    )
    if strong:
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if key.startswith("position.") or parameter.ndim > 1:
                    parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


def images(grid, batch=2):
    return torch.randn(batch, 3, grid[0] * PATCH, grid[1] * PATCH, generator=torch.Generator().manual_seed(1))


def permute_patches(x, grid, order):
    batch, channels = x.shape[:2]
    patches = x.view(batch, channels, grid[0], PATCH, grid[1], PATCH).permute(2, 4, 0, 1, 3, 5).flatten(0, 1)[order]
    return patches.view(*grid, batch, channels, PATCH, PATCH).permute(2, 3, 0, 4, 1, 5).reshape(x.shape)


def hooks(module, dtype=torch.float32, layers=range(DEPTH), seed=2):
    """Return what every hook makes of the same random tokens, queries and keys."""
    geometry = module.geometry
    tokens = geometry.prefix + module.grid[0] * module.grid[1]
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, tokens, geometry.dim, generator=generator).to(dtype)
    q, k = torch.randn(2, 2, geometry.heads, tokens, geometry.head_dim, generator=generator).to(dtype)
    out = [module.embed(x)]
    for layer in layers:
        out += [module.before_layer(x, layer), *module.rotate(q, k, layer)]
        bias = module.bias(q, k, layer)
        out += [] if bias is None else [bias]
    return out


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


every_module = pytest.mark.parametrize("name", NAMES)
every_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
every_prefix = pytest.mark.parametrize("prefix", PREFIXES)


# Rule 1: positions matter, and only through the module.


@every_module
@every_grid
@every_prefix
def test_permuting_patches_changes_the_logits_unless_the_module_is_none(name, grid, prefix):
    model, x = vit(name, grid, prefix), images(grid)
    order = torch.randperm(grid[0] * grid[1], generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        difference = (model(x) - model(permute_patches(x, grid, order))).abs().max()
    assert difference < 1e-5 if name == "none" else difference > 1e-3


@every_module
def test_untrained_module_already_tells_patches_apart(name):
    torch.manual_seed(0)
    module = position(name, prefix=0).double()
    geometry = module.geometry
    x = torch.ones(1, geometry.patches, geometry.dim, dtype=torch.float64)
    q = torch.randn(1, geometry.heads, 1, geometry.head_dim, dtype=torch.float64).expand(-1, -1, geometry.patches, -1)
    rows = [module.before_layer(module.embed(x), 1)[0]]
    rotated, _ = module.rotate(q, q, 0)
    rows.append(rotated[0].transpose(0, 1).flatten(1))
    bias = module.bias(q, q, 0)
    if bias is not None:
        rows.append(bias[0].transpose(0, 1).flatten(1))
    codes = torch.cat(rows, dim=1)
    # A convolution of equal tokens tells the border from the inside, nothing more.
    apart = {"none": 1, "peg": 9}.get(name, geometry.patches)
    assert len(codes.round(decimals=9).unique(dim=0)) == apart


# Rule 2: prefix tokens have an explicit policy.


@every_module
@pytest.mark.parametrize("prefix", [1, 5])
def test_prefix_is_not_rotated_and_not_told_apart_from_any_patch(name, prefix):
    module = position(name, prefix=prefix)
    geometry = module.geometry
    q, k = torch.randn(2, 2, geometry.heads, geometry.tokens, geometry.head_dim)
    for layer in range(DEPTH):
        for before, after in zip((q, k), module.rotate(q, k, layer), strict=True):
            assert torch.equal(before[:, :, :prefix], after[:, :, :prefix])
        bias = module.bias(q, k, layer)
        if bias is not None:
            for pairs in (bias[..., :prefix, prefix:], bias[..., prefix:, :prefix], bias[..., :prefix, :prefix]):
                assert (pairs == pairs[..., :1, :1]).all()


@every_module
@every_prefix
def test_bias_of_the_prefix_queries_alone_is_that_of_all(name, prefix):
    module = position(name, prefix=prefix)
    geometry = module.geometry
    q, k = torch.randn(2, 2, geometry.heads, geometry.tokens, geometry.head_dim)
    for layer in range(DEPTH):
        whole, few = module.bias(q, k, layer), module.bias(q[:, :, :prefix], k, layer)
        assert (whole is None) == (few is None)
        if whole is not None:
            expected, found = whole[..., :prefix, :], few[..., :prefix, :]
            assert torch.equal(*torch.broadcast_tensors(expected, found))


@every_module
@pytest.mark.parametrize("prefix", [1, 5])
def test_keys_turn_alike_under_the_query_of_the_cls_token_alone(name, prefix):
    module = position(name, prefix=prefix)
    geometry = module.geometry
    q, k = torch.randn(2, 2, geometry.heads, geometry.tokens, geometry.head_dim)
    for layer in range(DEPTH):
        cls, turned = module.rotate(q[:, :, :1], k, layer)
        assert torch.equal(cls, q[:, :, :1])
        torch.testing.assert_close(turned, module.rotate(q, k, layer)[1], atol=1e-6, rtol=1e-6)


@every_module
def test_prefix_rows_do_not_depend_on_the_grid(name):
    module, prefix = position(name, prefix=5), 5
    codes = []
    for grid in ((3, 5), ELSEWHERE):
        module.resize(grid, Transfer())
        tokens = torch.zeros(1, prefix + grid[0] * grid[1], DIM)
        x = module.embed(tokens)
        for layer in range(DEPTH):
            x = module.before_layer(x, layer)
        codes.append(x[:, :prefix])
    assert torch.equal(*codes)


# Rule 3: rectangles are normal.


@every_module
@pytest.mark.parametrize("grid", [(1, 6), (6, 1), (1, 1), (2, 7)], ids=str)
def test_any_grid_runs_and_can_become_any_other(name, grid):
    model = vit(name, grid)
    with torch.no_grad():
        assert model(images(grid)).isfinite().all()
        for other in ((5, 3), (1, 4), (4, 1), (1, 1)):
            model.resize((other[0] * PATCH, other[1] * PATCH), Transfer())
            assert model(images(other)).isfinite().all()


# Rule 4: resizing is exact, and checkpoints do not know sizes.


@every_module
@every_grid
def test_resize_away_and_back_is_bit_exact(name, grid):
    model, x = vit(name, grid, 5), images(grid)
    with torch.no_grad():
        before = model(x)
        for table in ("bicubic_antialias", "linear_corners"):
            model.resize((ELSEWHERE[0] * PATCH, ELSEWHERE[1] * PATCH), Transfer(table=table, coordinates="rescale"))
            assert model(images(ELSEWHERE)).isfinite().all()
        model.resize(model.trained_size, Transfer())
        assert torch.equal(model(x), before)


@every_module
def test_state_holds_parameters_only_and_keeps_its_shapes(name):
    module = position(name)
    shapes = {key: value.shape for key, value in module.state_dict().items()}
    assert shapes.keys() == dict(module.named_parameters()).keys()
    module.resize(ELSEWHERE, Transfer())
    assert shapes == {key: value.shape for key, value in module.state_dict().items()}


@every_module
def test_checkpoint_loads_strictly_at_any_size(name):
    trained = vit(name, (3, 5), 1, seed=1)
    other = vit(name, (3, 5), 1, seed=2)
    other.resize((ELSEWHERE[0] * PATCH, ELSEWHERE[1] * PATCH), Transfer())
    other.load_state_dict(trained.state_dict())
    other.resize(other.trained_size, Transfer())
    x = images((3, 5))
    with torch.no_grad():
        assert torch.equal(trained(x), other(x))
    if "table" not in trained.position.honours:  # nothing learned per position: any network of this kind takes it
        vit(name, ELSEWHERE, 1).load_state_dict(trained.state_dict())


@every_module
def test_only_honoured_factors_change_the_result(name):
    module = position(name).eval()
    for factor, values in {
        "table": ("bicubic_antialias", "bicubic", "bilinear", "linear_corners"),
        "coordinates": ("extrapolate", "rescale", *(["ntk"] if "ntk" in module.honours else [])),
    }.items():
        torch.manual_seed(0)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_()
        results = []
        for value in values:
            module.resize((5, 8), Transfer(**{factor: value}))
            results.append(hooks(module))
        for one in range(len(results)):
            for two in range(one):
                assert same(results[one], results[two]) != (factor in module.honours), (factor, values[one])


@every_module
def test_ntk_is_refused_where_there_are_no_frequencies(name):
    module = position(name)
    if "coordinates" in module.honours and "ntk" not in module.honours:
        with pytest.raises(ValueError, match=r"transfer\.coordinates='ntk'"):
            module.resize(ELSEWHERE, Transfer(coordinates="ntk"))
    else:
        module.resize(ELSEWHERE, Transfer(coordinates="ntk"))


# Rule 5: every parameter learns.


@every_module
@every_prefix
@pytest.mark.parametrize("size", [None, ELSEWHERE], ids=["trained", "elsewhere"])
def test_gradients_reach_every_parameter(name, prefix, size):
    model = vit(name, (3, 5), prefix).train()
    if size:
        model.resize((size[0] * PATCH, size[1] * PATCH), Transfer())
    model(images(size or (3, 5))).square().sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        # The last layer's patches do not reach a CLS head, so what acts between patches there may rest.
        if key.startswith("position.") and model.pool != "cls":
            assert parameter.grad.count_nonzero(), key


# Rule 6: phases in float32, results in the activations' dtype, no graph break.


@every_module
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("weights", ["cast", "autocast"])
def test_results_have_the_dtype_of_the_activations(name, dtype, weights):
    module = position(name, prefix=5).eval()
    reference = hooks(module)
    if weights == "cast":
        module = module.to(dtype)
    with torch.autocast("cpu", dtype, enabled=weights == "autocast" and dtype != torch.float32):
        for grid in ((3, 5), ELSEWHERE, (3, 5)):
            module.resize(grid, Transfer())
            results = hooks(module, dtype)
            assert {result.dtype for result in results} == {dtype}
    for result, exact in zip(results, reference, strict=True):
        torch.testing.assert_close(result.float(), exact, atol=0.06, rtol=0.02)


@every_module
def test_derived_tables_stay_exact_when_the_module_is_cast_or_moved(name):
    module = position(name)
    before = {key: value.clone() for key, value in module.named_buffers()}
    for key, value in module.bfloat16().float().named_buffers():
        assert torch.equal(value, before[key]), key
        assert value.dtype in (torch.float32, torch.int64), key


@every_module
def test_forward_runs_under_autocast(name):
    model, x = vit(name, (3, 5), 5), images((3, 5))
    with torch.no_grad():
        exact = model(x)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = model(x)
    torch.testing.assert_close(rounded.float(), exact, atol=0.1 * float(exact.abs().max()), rtol=0)


class _Hooks(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, q, k):
        out = [self.module.embed(x)]
        for layer in range(DEPTH):
            bias = self.module.bias(q, k, layer)
            out += [self.module.before_layer(x, layer), *self.module.rotate(q, k, layer)]
            out += [] if bias is None else [bias]
        return out


def hook_inputs(module):
    geometry = module.geometry
    q, k = torch.randn(2, 2, geometry.heads, geometry.tokens, geometry.head_dim)
    return torch.randn(2, geometry.tokens, geometry.dim), q, k


@every_module
def test_compiles_without_a_graph_break(name):
    torch.compiler.reset()
    module = _Hooks(position(name)).train()
    inputs = [tensor.requires_grad_() for tensor in hook_inputs(module.module)]
    torch.manual_seed(0)
    exact = module(*inputs)
    torch.manual_seed(0)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")(*inputs)
    torch.testing.assert_close(compiled, exact, atol=1e-5, rtol=1e-5)
    sum(tensor.sum() for tensor in compiled).backward()
    assert all(parameter.grad is not None for parameter in module.parameters())


@every_module
def test_exports(name):
    module = _Hooks(position(name)).eval()
    inputs = hook_inputs(module.module)
    exported = torch.export.export(module, inputs).module()
    torch.testing.assert_close(exported(*inputs), module(*inputs), atol=1e-6, rtol=1e-6)


@every_module
def test_can_be_built_on_the_meta_device(name):
    trained = position(name)
    with torch.device("meta"):
        empty = position(name)
    assert all(tensor.is_meta for tensor in (*empty.parameters(), *empty.buffers()))
    empty.to_empty(device="cpu").load_state_dict(trained.state_dict())
    assert same(hooks(empty.eval()), hooks(trained.eval()))


# Rule 7: instances do not share anything.


def alternatives(name):
    """Yield another value for every setting of a file, from the constructor's annotation."""
    target = get_class(CONFIGS[name]["_target_"])
    hints = get_type_hints(target.__init__)
    for key, value in CONFIGS[name].items():
        if key in ("_target_", "_partial_") or isinstance(value, DictConfig):
            continue
        options = [option for kind in (hints[key], *get_args(hints[key])) for option in literal(kind)]
        if options:
            yield from ((key, option) for option in options if option != value)
        elif isinstance(value, bool):
            yield key, not value
        else:
            yield key, value + 2 if isinstance(value, int) else value * 2 + 1


def literal(kind):
    return get_args(kind) if get_origin(kind) is Literal else ()


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [(name, *alternative) for name in NAMES for alternative in alternatives(name)],
)
def test_every_setting_has_an_effect_and_instances_do_not_share_it(name, setting, value):
    def observe(settings=()):
        torch.manual_seed(0)
        module = position(name, settings, depth=4).train()
        results = hooks(module, layers=range(4))
        module.resize((3, 3), Transfer(coordinates="extrapolate"))
        return results + hooks(module, layers=range(4)), sum(p.numel() for p in module.parameters())

    (before, count), (changed, other), (after, _) = observe(), observe({setting: value}), observe()
    assert same(before, after)
    assert not same(before, changed) or count != other


# Rule 8: unknown settings and impossible sizes are refused.


@every_module
def test_unknown_setting_is_refused_by_name(name):
    with pytest.raises(TypeError, match="thta"):
        position(name, {"thta": 5})


@pytest.mark.parametrize(
    ("name", "setting"),
    [(name, key) for name in NAMES for key, value in CONFIGS[name].items() if isinstance(value, str) and key[0] != "_"],
)
def test_unknown_choice_is_refused_by_name(name, setting):
    with pytest.raises(ValueError, match=rf"{setting}.*nope"):
        position(name, {setting: "nope"})


@every_module
@pytest.mark.parametrize(("dim", "heads"), [(dim, heads) for dim in (2, 4, 6, 7, 8, 10, 12, 24) for heads in (1, 2)])
def test_a_width_works_or_is_refused_at_construction(name, dim, heads):
    try:
        module = position(name, dim=dim, heads=heads)
    except ValueError as error:
        assert f"dim={dim}" in str(error) or f"width {dim // heads}" in str(error), error
    else:
        assert all(result.isfinite().all() for result in hooks(module))


@every_module
def test_settings_are_plain_numbers_and_words(name):
    """No dead keys, no null that means off, and no setting that the file does not show."""
    config = OmegaConf.to_container(CONFIGS[name])
    settings = set(config) - {"_target_", "_partial_"}
    signature = inspect.signature(get_class(config["_target_"]).__init__).parameters
    assert config["_partial_"] is True
    assert settings == set(signature) - {"self", "geometry"}
    assert None not in config.values()
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.values())
    assert len(signature) - 1 <= 8


# Rule 9: sizes are announced.


@every_module
def test_unannounced_size_is_refused(name):
    model = vit(name)
    with pytest.raises(ValueError, match="resize"):
        model(images(ELSEWHERE))
    with pytest.raises(ValueError, match="grid"):
        model.position.resize((0, 3), Transfer())


# Fairness and bookkeeping.


@every_module
@every_prefix
def test_arms_differ_in_the_position_parameters_only(name, prefix):
    plain = vit("none", prefix=prefix, strong=False).state_dict()
    arm = vit(name, prefix=prefix, strong=False).state_dict()
    backbone = {key: value for key, value in arm.items() if not key.startswith("position.")}
    assert backbone.keys() == plain.keys()
    assert all(torch.equal(plain[key], value) for key, value in backbone.items())


@every_module
def test_images_of_a_batch_do_not_touch_each_other(name):
    model, x = vit(name), images((3, 5), batch=7)
    with torch.no_grad():
        together = model(x)
        torch.testing.assert_close(torch.cat([model(x[:1]), model(x[1:3]), model(x[3:])]), together, atol=1e-5, rtol=0)


@every_module
def test_can_be_copied_after_a_step_and_sees_new_weights(name):
    module = position(name).train()
    sum(result.sum() for result in hooks(module))
    twin = copy.deepcopy(module).eval()
    assert same(hooks(twin), hooks(module.eval()))
    if list(twin.parameters()):
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.add_(0.5)
        assert not same(hooks(twin), hooks(module))


@every_module
def test_names_itself(name):
    module = position(name)
    assert module.label
    assert module.injection
    assert module.family in ("none", "additive", "rotary", "bias", "convolutional", "combined")
    assert module.honours <= {"table", "coordinates", "ntk"}


@every_module
def test_two_equal_training_steps_are_equal_to_the_bit_in_deterministic_mode(name):
    def gradients():
        model = vit(name).train()
        model.resize((ELSEWHERE[0] * PATCH, ELSEWHERE[1] * PATCH), Transfer())
        torch.manual_seed(0)
        model(images(ELSEWHERE)).square().sum().backward()
        return [parameter.grad for parameter in model.parameters()]

    torch.use_deterministic_algorithms(True)
    try:
        assert same(gradients(), gradients())
    finally:
        torch.use_deterministic_algorithms(False)


@every_module
def test_learned_position_parameters_are_never_decayed(name):
    """Rule 5."""
    model = vit(name)
    decayed = {id(p) for p in parameter_groups(model, weight_decay=0.5)[0]["params"]}
    assert decayed
    assert not [key for key, p in model.position.named_parameters() if id(p) in decayed]


@every_module
def test_prefix_tokens_are_not_given_the_code_of_a_patch(name):
    """Rule 2."""
    module = position(name, prefix=2).double()
    x = torch.zeros(1, module.geometry.tokens, DIM, dtype=torch.float64)
    for code in (module.embed(x)[0], module.before_layer(x, 1)[0]):
        if code.any():
            prefix, patches = code[:2], code[2:]
            alike = (prefix[:, None] - patches).abs().amax(-1) < 1e-12
            assert not alike[prefix.any(-1)].any()


@every_module
def test_a_larger_grid_continues_the_smaller_one(name):
    """Rule 3: rows are rows and columns are columns, seen by cropping a grid that counts on."""
    small, large = position(name, grid=(3, 5), prefix=1), position(name, grid=(3, 5), prefix=1)
    large.load_state_dict(small.state_dict())
    if "coordinates" not in small.honours or "table" in small.honours or name in RASTER:
        pytest.skip("does not count on beyond its grid")
    large.resize((4, 7), Transfer(coordinates="extrapolate"))
    rows, columns = torch.arange(3), torch.arange(5)
    crop = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + (rows[:, None] * 7 + columns).flatten()])
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(1, 29, DIM, generator=generator)
    q, k = (torch.randn(1, HEADS, 29, DIM // HEADS, generator=generator) for _ in range(2))
    torch.testing.assert_close(large.embed(x)[:, crop], small.embed(x[:, crop]), atol=1e-5, rtol=1e-5)
    for whole, part in zip(large.rotate(q, k, 0), small.rotate(q[:, :, crop], k[:, :, crop], 0), strict=True):
        torch.testing.assert_close(whole[:, :, crop], part, atol=1e-5, rtol=1e-5)
    bias = large.bias(q, k, 0)
    if bias is not None:
        expected = small.bias(q[:, :, crop], k[:, :, crop], 0)
        torch.testing.assert_close(bias[..., crop, :][..., crop], expected, atol=1e-5, rtol=1e-5)
