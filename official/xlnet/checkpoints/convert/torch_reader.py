"""Safe reader of PyTorch `.bin` files, without PyTorch and without executing arbitrary pickles.

A `.bin` file contains a pickled dictionary of tensors, which refer to storages by key, and the
bytes of the storages: in a zip archive since PyTorch 1.6, before that concatenated after the pickle
(the format of the published checkpoints). Unpickling can call any importable function. This reader
allows only three: two that describe a tensor, and the constructor of an ordered dictionary; any
other name raises an error. Sizes that a file declares are compared with the file before anything is
read, and only names are hashed: the time and memory it takes are in proportion to the file.
"""

from __future__ import annotations

import math
import os
import pickle
import struct
import zipfile
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from official.xlnet.errors import DataError
from official.xlnet.files import file_system

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
_MAX_AXES = 8
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_LEGACY_COUNT = struct.Struct("<q")  # Precedes each storage: its number of elements.


class _Storage(NamedTuple):
    """A storage: its key in the file, element type, and number of elements."""

    key: str
    dtype: np.dtype
    size: int


class _Tensor(NamedTuple):
    """A view of a storage; offset and strides are in elements."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


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
        self._offsets: dict[str, int] = {}  # Byte offsets of the storages in a legacy file.
        self._folder = ""  # Folder of the storages in a zip archive.
        file_system.require_regular(path)
        try:
            is_archive = zipfile.is_zipfile(path)
            tensors = self._open_archive() if is_archive else self._open_legacy()
        except DataError:
            raise
        except Exception as error:  # A damaged pickle can raise any exception.
            raise self._damaged(error) from error
        if not isinstance(tensors, dict) or not all(
            isinstance(name, str) and isinstance(tensor, _Tensor)
            for name, tensor in tensors.items()
        ):
            raise DataError(f"{path}: expected a dictionary of tensors, got something else")
        for name, tensor in tensors.items():
            self._check(name, tensor)
        self._tensors: dict[str, _Tensor] = dict(tensors)
        self.shapes = {name: tensor.shape for name, tensor in tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a tensor as a read-only array."""
        tensor = self._tensors[name]
        dtype, size = tensor.storage.dtype, tensor.storage.size
        sizes = zip(tensor.shape, tensor.strides, strict=True)
        steps = [dtype.itemsize * step if n > 1 else 0 for n, step in sizes]
        try:
            data = self._read_storage(tensor.storage, dtype.itemsize * size)
        except Exception as error:  # What zipfile raises for a wrong file is of many kinds.
            raise self._damaged(error) from error
        if len(data) != dtype.itemsize * size:
            raise DataError(
                f"{self._path}: {name}: expected {dtype.itemsize * size} bytes, got {len(data)}"
            )
        return np.lib.stride_tricks.as_strided(
            np.frombuffer(data, dtype)[tensor.offset :],
            tensor.shape,
            steps,
            writeable=False,
        )

    def _open_archive(self) -> Any:
        with zipfile.ZipFile(self._path) as archive:
            pickles = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            if len(pickles) != 1:
                raise DataError(f"{self._path}: expected one data.pkl, got {len(pickles)}")
            self._folder = pickles[0].removesuffix("data.pkl")
            for entry in archive.infolist():  # As PyTorch writes them.
                is_plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
                if not is_plain or entry.file_size > os.path.getsize(self._path):
                    raise DataError(
                        f"{self._path}: {entry.filename!r}: expected an entry that is neither "
                        "compressed nor encrypted, and not larger than the file"
                    )
            byte_order = self._folder + "byteorder"
            if byte_order in archive.namelist() and archive.read(byte_order) != b"little":
                raise DataError(f"{self._path}: expected little-endian numbers, got big-endian")
            with archive.open(pickles[0]) as file:
                unpickler = _Unpickler(file, self._path)
                tensors = unpickler.load()
            for key, storage in unpickler.storages.items():
                expected = storage.size * storage.dtype.itemsize
                found = archive.getinfo(f"{self._folder}data/{key}").file_size
                if found != expected:
                    raise DataError(
                        f"{self._path}: storage {key}: expected {expected} bytes, got {found}"
                    )
        return tensors

    def _open_legacy(self) -> Any:
        with open(self._path, "rb") as file:
            if _Unpickler(file, self._path).load() != _LEGACY_MAGIC:
                raise DataError(f"{self._path}: expected a file of PyTorch, got something else")
            protocol, system = (_Unpickler(file, self._path).load() for _ in range(2))
            if protocol != _LEGACY_PROTOCOL or system["little_endian"] is not True:
                raise DataError(
                    f"{self._path}: expected little-endian numbers of protocol {_LEGACY_PROTOCOL}"
                )
            unpickler = _Unpickler(file, self._path)
            tensors = unpickler.load()
            keys = _Unpickler(file, self._path).load()
            offset, end = file.tell(), os.path.getsize(self._path)
            for key in map(_name, keys):
                storage = unpickler.storages[key]
                file.seek(offset)
                (size,) = _LEGACY_COUNT.unpack(file.read(_LEGACY_COUNT.size))
                self._offsets[key] = offset + _LEGACY_COUNT.size
                offset += _LEGACY_COUNT.size + size * storage.dtype.itemsize
                if size != storage.size or offset > end:
                    raise EOFError(f"storage {key} is truncated")
        return tensors

    def _read_storage(self, storage: _Storage, num_bytes: int) -> bytes:
        if self._folder:
            with zipfile.ZipFile(self._path) as archive:
                return archive.read(f"{self._folder}data/{storage.key}")  # Verifies the CRC.
        with open(self._path, "rb") as file:
            file.seek(self._offsets[storage.key])
            return file.read(num_bytes)

    def _check(self, name: str, tensor: _Tensor) -> None:
        """Raises `DataError` if a tensor extends beyond its storage."""
        storage, offset, shape, strides = tensor
        numbers = (storage.size, offset, *shape, *strides)
        is_inside = len(shape) == len(strides) <= _MAX_AXES and all(
            isinstance(number, int) and number >= 0 for number in numbers
        )
        # A step of 0 would repeat a number without end.
        is_inside = is_inside and max(math.prod(shape), *shape, 0) <= storage.size
        if is_inside and 0 not in shape:
            last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
            is_inside = last < storage.size
        if not is_inside:
            raise DataError(f"{self._path}: {name}: expected a tensor inside its storage")

    def _damaged(self, error: Exception) -> DataError:
        detail = str(error).partition("\n")[0]
        return DataError(f"{self._path} is not a valid PyTorch file: {detail}")


def _name(value: Any) -> str:
    """A string, and nothing that takes long to hash."""
    if not isinstance(value, str):
        raise ValueError(f"expected a name, got {type(value).__name__}")
    return value


class _Names(dict):
    """Dictionary in a pickle, by names. Attributes that PyTorch gives it are left out."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_name(key), value)

    def __setstate__(self, state: Any) -> None:
        pass


class _NewNames:
    """Replacement of `collections.OrderedDict`."""

    __slots__ = ()

    def __call__(self) -> _Names:
        return _Names()


class _RebuildTensor:
    """Replacement of `torch._utils._rebuild_tensor_v2`, which creates a tensor."""

    __slots__ = ()

    def __call__(self, storage: _Storage, offset: int, shape: Any, strides: Any, *_: Any):
        if not isinstance(storage, _Storage):
            raise ValueError("a tensor without a storage")
        return _Tensor(storage, offset, tuple(shape), tuple(strides))


class _RebuildParameter:
    """Replacement of `torch._utils._rebuild_parameter`, which wraps a tensor in a parameter."""

    __slots__ = ()

    def __call__(self, tensor: _Tensor, *_: Any) -> _Tensor:
        return tensor


# Globals that a pickle may refer to. None has attributes that a pickle could set.
_GLOBALS: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): _NewNames(),
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
}


class _Unpickler(pickle._Unpickler):
    """Unpickler, in Python, that restricts globals to dictionaries of tensors, and keys to names.

    Sets and dictionaries of other keys are not made.
    """

    dispatch = {
        code: load
        for code, load in pickle._Unpickler.dispatch.items()
        if bytes([code]) not in (pickle.EMPTY_SET, pickle.FROZENSET, pickle.ADDITEMS, pickle.DICT)
    }

    def __init__(self, file: Any, path: str):
        super().__init__(file)
        self._path = path
        self.storages: dict[str, _Storage] = {}

    def load_empty_dictionary(self) -> None:
        self.append(_Names())  # type: ignore[attr-defined]

    dispatch[pickle.EMPTY_DICT[0]] = load_empty_dictionary  # type: ignore[assignment]

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _DTYPES:
            return name  # Used only as the type in a persistent id.
        if (module, name) not in _GLOBALS:
            raise DataError(
                f"{self._path}: expected nothing but tensors, got {module}.{name}, which is not "
                "allowed"
            )
        return _GLOBALS[module, name]

    def persistent_load(self, pid: Any) -> _Storage:
        kind, storage_type, key, _, size, *view = pid
        if kind != "storage" or any(part is not None for part in view):
            raise ValueError("unknown kind of storage")
        storage = _Storage(_name(key), np.dtype(_DTYPES[_name(storage_type)]), size)
        return self.storages.setdefault(storage.key, storage)
