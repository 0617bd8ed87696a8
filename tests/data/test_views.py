import numpy as np
import pytest
import torch
from PIL import Image

from vitpos.data.views import CentralView, PhotoAugment


def ramp(height, width):
    """Red tells the row, green the column, as shares of the image."""
    rows, columns = np.mgrid[:height, :width]
    values = np.stack((rows * 255 / height, columns * 255 / width, np.zeros_like(rows)), -1)
    return Image.fromarray(values.round().astype(np.uint8))


@pytest.mark.parametrize("source", [(300, 300), (200, 400), (400, 200)])
@pytest.mark.parametrize("size", [(32, 32), (64, 64), (224, 224), (48, 96), (96, 48)])
@pytest.mark.parametrize("crop", [1.0, 0.875, 0.5])
def test_the_view_is_the_central_box_of_the_wanted_shape(source, size, crop):
    image = np.asarray(CentralView(size, crop)(ramp(*source))).astype(float)
    assert image.shape == (*size, 3)
    scale = min(source[0] / size[0], source[1] / size[1]) * crop
    for channel, axis in ((0, 0), (1, 1)):
        share = scale * size[axis] / source[axis]
        profile = image[..., channel].mean(1 - axis)
        middle = profile[size[axis] // 4], profile[-1 - size[axis] // 4]
        distance = (size[axis] - 1 - 2 * (size[axis] // 4)) / size[axis]
        assert middle[1] - middle[0] == pytest.approx(255 * share * distance, abs=3)
        assert sum(middle) / 2 == pytest.approx(255 / 2, abs=2)


def test_the_field_of_view_is_the_same_at_all_sizes():
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)).resize((320, 320))
    views = [
        np.asarray(CentralView((side, side), 0.8)(image).resize((16, 16), Image.Resampling.BOX)) for side in (64, 128)
    ]
    assert np.abs(views[0].astype(float) - views[1]).mean() < 2


@pytest.mark.parametrize("shape", [(7, 5), (333, 500), (1, 1)])
def test_a_full_view_of_any_image_stays_inside(shape):
    for size in ((16, 16), (16, 48), (17, 31)):
        assert CentralView(size, 1.0)(ramp(*shape)).size == size[::-1]


def test_augmented_views_have_the_wanted_size_and_vary():
    view = PhotoAugment(operations=2).build((24, 40))
    images = [np.asarray(view(ramp(60, 50))) for _ in range(8)]
    assert {image.shape for image in images} == {(24, 40, 3)}
    assert len({image.tobytes() for image in images}) == 8


def test_without_augmentation_an_image_is_only_resized():
    view = PhotoAugment(scale=(1.0, 1.0), flip=False).build((30, 30))
    image = ramp(30, 30)
    assert np.array_equal(np.asarray(view(image)), np.asarray(image))


def test_half_of_the_images_are_mirrored():
    torch.manual_seed(0)
    view = PhotoAugment(scale=(1.0, 1.0), flip=True).build((30, 30))
    mirrored = [int(np.asarray(view(ramp(30, 30)))[0, 0, 1]) > 100 for _ in range(400)]
    assert 0.4 < np.mean(mirrored) < 0.6


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("scale", [0.5]),
        ("scale", [0, 1]),
        ("scale", [0.5, 0.2]),
        ("magnitude", 31),
        ("operations", -1),
        ("mixup", -0.1),
    ],
)
def test_a_number_without_meaning_is_refused_by_name(setting, value):
    with pytest.raises(ValueError, match=rf"data\.augment\.{setting}="):
        PhotoAugment(**{setting: value})
