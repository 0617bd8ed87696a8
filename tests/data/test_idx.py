import gzip
import struct

import numpy as np
import pytest

from vitpos.data.idx import read_idx

ARRAY = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def encode(array, kind=8):
    return bytes((0, 0, kind, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_plain_and_gzipped_files_read_alike(tmp_path):
    (tmp_path / "a-ubyte").write_bytes(encode(ARRAY))
    (tmp_path / "a-ubyte.gz").write_bytes(gzip.compress(encode(ARRAY)))
    for name in ("a-ubyte", "a-ubyte.gz"):
        found = read_idx(tmp_path / name)
        assert np.array_equal(found, ARRAY)
        assert found.flags.writeable


@pytest.mark.parametrize(
    "content",
    [b"", b"\0\0", encode(ARRAY)[:-1], encode(ARRAY) + b"x", encode(ARRAY)[:9], encode(ARRAY, kind=13), b"<html>404"],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, content):
    (tmp_path / "train-images").write_bytes(content)
    with pytest.raises(ValueError, match=r"train-images"):
        read_idx(tmp_path / "train-images")


def test_a_damaged_archive_is_refused_by_name(tmp_path):
    whole = gzip.compress(encode(ARRAY))
    for number, content in enumerate((whole[:-9], b"no gzip", whole[:20] + b"\0\0\0" + whole[23:])):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{number}\.gz: damaged"):
            read_idx(path)
