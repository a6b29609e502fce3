"""Safe reader of PyTorch `.bin` files, without PyTorch and without executing arbitrary pickles.

A `.bin` file contains a pickled dictionary of tensors, which refer to storages by key, and the
bytes of the storages: in a zip archive since PyTorch 1.6, before that concatenated after the pickle
(the format of the published checkpoints). Unpickling can call any importable function. This reader
allows only the constructors of tensors and of an ordered dictionary, and replaces them by functions
of its own; any other name raises an error. A tensor is never larger than its bytes in the file.
"""

from __future__ import annotations

import contextlib
import io
import math
import operator
import os
import pickle
import struct
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from official.xlnet.errors import DataError

_DTYPES: dict[str, Any] = {
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
    "BFloat16Storage": ml_dtypes.bfloat16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
}
_LEGACY_HEADER = [0x1950A86A20F9469CFC6C, 1001]
_LEGACY_COUNT = struct.Struct("<Q")  # Precedes each storage: its number of elements.


class _Tensor(NamedTuple):
    """A view of the storage of a key; offset and strides are in elements."""

    key: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Dictionary(dict):
    """`collections.OrderedDict` of a pickle, without the attributes that PyTorch gives it."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        pass


# Meaning of names in a pickle. No value is a class, whose attributes a pickle could set.
_GLOBALS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): lambda: _Dictionary(),
    ("torch._utils", "_rebuild_tensor_v2"): lambda key, offset, shape, strides, *_: _Tensor(
        key, offset, tuple(map(operator.index, shape)), strides
    ),
    ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
}
_GLOBALS |= {("torch", name): name for name in _DTYPES}


class TorchFile:
    """Reader of the tensors in a PyTorch `.bin` file.

    Args:
      path: path of the file.

    Attributes:
      shapes: {name: shape} of all tensors.

    Raises:
      DataError: the file is damaged, is not a dictionary of tensors, or its pickle refers to
        anything but tensors.
    """

    def __init__(self, path: str):
        self._path = path
        self._dtypes: dict[str, np.dtype] = {}  # {key of a storage: type}.
        self._places: dict[str, tuple[int, int]] = {}  # Offset and bytes of legacy storages.
        self._folder = ""  # Folder of the storages in a zip archive.
        with self._damage_in_a_sentence():
            is_archive = zipfile.is_zipfile(path)
            tensors = self._open_archive() if is_archive else self._open_legacy()
            if not isinstance(tensors, dict) or not all(map(_is_tensor, tensors.items())):
                raise ValueError("expected a dictionary of tensors, got something else")
        self._tensors: dict[str, _Tensor] = tensors
        self.shapes = {name: tensor.shape for name, tensor in tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a tensor as a read-only array.

        Raises:
          DataError: the tensor is damaged, or extends beyond its storage.
        """
        key, offset, shape, strides = self._tensors[name]
        with self._damage_in_a_sentence():
            data, dtype = self._read_storage(key), self._dtypes[key]
            num_bytes = dtype.itemsize
            if math.prod(shape) * num_bytes > len(data):  # A stride of 0 repeats a number.
                raise ValueError(f"{name}: expected a tensor inside its storage")
            steps = [num_bytes * stride for stride in strides]
            return np.ndarray(shape, dtype, data, num_bytes * offset, steps)

    def _open_archive(self) -> Any:
        with zipfile.ZipFile(self._path) as archive:
            [pickled] = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            self._folder = pickled.removesuffix("data.pkl")
            byte_order = self._folder + "byteorder"
            if byte_order in archive.namelist() and archive.read(byte_order) != b"little":
                raise ValueError("expected little-endian numbers, got big-endian")
            return _Unpickler(io.BytesIO(archive.read(pickled)), self._dtypes).load()

    def _open_legacy(self) -> Any:
        with open(self._path, "rb") as file:
            parts = (_Unpickler(file, self._dtypes).load() for _ in range(5))
            *header, system, tensors, keys = parts
            if header != _LEGACY_HEADER or system["little_endian"] is not True:
                raise ValueError("expected a little-endian file of PyTorch, got something else")
            for key in keys:
                (size,) = _LEGACY_COUNT.unpack(file.read(_LEGACY_COUNT.size))
                num_bytes = size * self._dtypes[key].itemsize
                self._places[key] = (file.tell(), num_bytes)
                file.seek(num_bytes, os.SEEK_CUR)
        return tensors

    def _read_storage(self, key: str) -> bytes:
        if self._folder:
            with zipfile.ZipFile(self._path) as archive:
                return archive.read(f"{self._folder}data/{key}")  # Verifies the CRC.
        offset, num_bytes = self._places[key]
        with open(self._path, "rb") as file:
            file.seek(offset)
            return file.read(num_bytes)

    @contextlib.contextmanager
    def _damage_in_a_sentence(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # A damaged archive or pickle can raise any exception.
            detail = str(error).partition("\n")[0]
            raise DataError(f"{self._path} is not a valid PyTorch file: {detail}") from error


def _is_tensor(entry: tuple[Any, Any]) -> bool:
    name, value = entry
    return isinstance(name, str) and isinstance(value, _Tensor) and min(value.shape, default=0) >= 0


class _Unpickler(pickle.Unpickler):
    """Unpickler of tensors from a file; fills `dtypes`, {key of a storage: type}."""

    def __init__(self, file: Any, dtypes: dict[str, np.dtype]):
        super().__init__(file)
        self._dtypes = dtypes

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _GLOBALS:
            raise ValueError(f"expected nothing but tensors, got {module}.{name}")
        return _GLOBALS[module, name]

    def persistent_load(self, pid: Any) -> str:
        object_type, storage_type, key, _, _, *view = pid
        if object_type != "storage" or any(part is not None for part in view):
            raise ValueError("unknown kind of storage")
        self._dtypes[key] = np.dtype(_DTYPES[storage_type])
        return key
