import numpy as np
import pytest
from PIL import Image

from vitpos.data.files import STAMP, check, class_names, find_files, open_rgb


def picture(mode="RGB", size=(20, 16), seed=0):
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(noise).convert(mode)


@pytest.fixture
def folder(tmp_path):
    for name in ("b", "a", "ä c"):
        (tmp_path / name / "deep").mkdir(parents=True)
        picture().save(tmp_path / name / "2.png")
        picture().save(tmp_path / name / "1.JPEG")
        picture().save(tmp_path / name / "deep" / "3.webp")
        (tmp_path / name / "notes.txt").write_text("no image")
        (tmp_path / name / "._1.jpg").write_text("another system's shadow of a file")
    (tmp_path / ".hidden").mkdir()
    return tmp_path


def test_images_are_listed_by_class_and_path(folder):
    classes = class_names(folder)
    files = find_files(folder, classes)
    assert classes == ["a", "b", "ä c"]
    paths = [str(files.path(number).relative_to(folder)) for number in range(9)]
    assert paths == [f"{name}/{file}" for name in classes for file in ("1.JPEG", "2.png", "deep/3.webp")]
    assert files.labels.tolist() == [0] * 3 + [1] * 3 + [2] * 3


def test_a_missing_folder_and_a_folder_without_classes_are_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match=r"data\.root: .*train is missing"):
        class_names(tmp_path / "train")
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match=r"data\.root: .*train holds no class folders"):
        class_names(tmp_path / "train")


def test_an_empty_class_is_refused_by_name(folder):
    (folder / "empty").mkdir()
    (folder / "empty" / "notes.txt").write_text("")
    with pytest.raises(ValueError, match="empty holds no image"):
        find_files(folder, class_names(folder))


@pytest.mark.parametrize("mode", ["L", "1", "P", "CMYK", "LA", "RGBA", "YCbCr"])
def test_other_modes_become_rgb(tmp_path, mode):
    path = tmp_path / ("x.jpg" if mode in ("CMYK", "YCbCr") else "x.png")
    picture(mode).save(path)
    image = open_rgb(path)
    assert (image.mode, image.size) == ("RGB", (20, 16))


def test_a_grey_image_has_three_equal_channels(tmp_path):
    picture("L").save(tmp_path / "x.png")
    values = np.asarray(open_rgb(tmp_path / "x.png"))
    assert (values == np.asarray(picture("L"))[..., None]).all()


def test_transparent_pixels_are_white(tmp_path):
    image = picture("RGBA")
    image.putalpha(0)
    image.save(tmp_path / "rgba.png")
    palette = picture().quantize(4)
    palette.info["transparency"] = bytes(4)
    palette.save(tmp_path / "palette.png")
    for name in ("rgba", "palette"):
        assert (np.asarray(open_rgb(tmp_path / f"{name}.png")) == 255).all()


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_more_than_eight_bits_are_refused_by_name(tmp_path, mode):
    values = np.zeros((8, 8), {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode])
    Image.fromarray(values).save(tmp_path / "deep.tiff")
    with pytest.raises(ValueError, match=r"deep\.tiff: mode .* more than 8 bits"):
        open_rgb(tmp_path / "deep.tiff")


def damage(path, how):
    content = path.read_bytes()
    path.write_bytes({"empty": b"", "text": b"<html>", "truncated": content[: len(content) * 2 // 3]}[how])


@pytest.mark.parametrize("how", ["empty", "text", "truncated"])
@pytest.mark.parametrize("file", ["1.JPEG", "2.png"])
def test_a_damaged_image_is_refused_by_name(folder, how, file):
    damage(folder / "b" / file, how)
    files = find_files(folder, class_names(folder))
    for _ in range(2):  # a check that failed is not remembered
        with pytest.raises(ValueError, match=f"b/{file}: not a readable image"):
            check(files, threads=2)


def test_a_check_that_passed_is_remembered_until_a_file_changes(folder, monkeypatch):
    files = find_files(folder, class_names(folder))
    check(files, threads=1)
    assert (folder / STAMP).is_file()
    with monkeypatch.context() as patch:
        patch.setattr("vitpos.data.files.open_rgb", pytest.fail)
        check(files, threads=1)
    damage(folder / "a" / "2.png", "truncated")
    with pytest.raises(ValueError, match=r"a/2\.png"):
        check(files, threads=1)


def test_the_stamp_is_no_class_and_no_image(folder):
    files = find_files(folder, class_names(folder))
    check(files, threads=1)
    again = find_files(folder, class_names(folder))
    assert np.array_equal(again.names, files.names)
