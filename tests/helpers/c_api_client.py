"""Runs an exported model through TensorFlow's C library, without its Python; started by tests.

    python -I c_api_client.py REQUEST.json

REQUEST.json: {"libraries": [paths, loaded in order], "operations": [paths of libraries of
operations], "model": directory, "input": "name:0", "output": "name:0", "texts": [...]}. Prints
the numbers of the output, which are floats, as JSON.
"""

import ctypes
import json
import sys
import types
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

_FLOAT, _STRING = 1, 7
_TSTRING_BYTES = 24


class Output(ctypes.Structure):
    _fields_ = [("operation", c_void_p), ("index", c_int)]


# {function without TF_: (what it returns, its arguments)}.
PROTOTYPES = {
    "NewStatus": (c_void_p,),
    "GetCode": (c_int, c_void_p),
    "Message": (c_char_p, c_void_p),
    "LoadLibrary": (c_void_p, c_char_p, c_void_p),
    "NewGraph": (c_void_p,),
    "NewSessionOptions": (c_void_p,),
    "LoadSessionFromSavedModel": (
        c_void_p,
        *(c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p, c_void_p),
    ),
    "GraphOperationByName": (c_void_p, c_void_p, c_char_p),
    "AllocateTensor": (c_void_p, c_int, POINTER(c_int64), c_int, c_size_t),
    "TensorData": (c_void_p, c_void_p),
    "TensorByteSize": (c_size_t, c_void_p),
    "TensorType": (c_int, c_void_p),
    "StringCopy": (None, c_void_p, c_char_p, c_size_t),
    "StringInit": (None, c_void_p),
    "SessionRun": (
        None,
        *(c_void_p, c_void_p, POINTER(Output), POINTER(c_void_p), c_int),
        *(POINTER(Output), POINTER(c_void_p), c_int, POINTER(c_void_p), c_int, c_void_p, c_void_p),
    ),
}


def functions(libraries):
    """The functions of `PROTOTYPES`, each of the first library that has it."""
    found = types.SimpleNamespace()
    for name, (result, *arguments) in PROTOTYPES.items():
        library = next(each for each in libraries if hasattr(each, f"TF_{name}"))
        function = getattr(library, f"TF_{name}")
        function.restype, function.argtypes = result, arguments
        setattr(found, name, function)
    return found


def main(path):
    with open(path) as file:
        request = json.load(file)
    api = functions([ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in request["libraries"]])
    status = api.NewStatus()

    def check():
        if api.GetCode(status):
            raise SystemExit(api.Message(status).decode())

    for name in request["operations"]:
        api.LoadLibrary(name.encode(), status)
        check()
    graph, options, tags = api.NewGraph(), api.NewSessionOptions(), (c_char_p * 1)(b"serve")
    folder = request["model"].encode()
    session = api.LoadSessionFromSavedModel(options, None, folder, tags, 1, graph, None, status)
    check()

    texts = [text.encode() for text in request["texts"]]
    shape = (c_int64 * 1)(len(texts))
    tensor = api.AllocateTensor(_STRING, shape, 1, _TSTRING_BYTES * len(texts))
    for number, text in enumerate(texts):
        place = api.TensorData(tensor) + number * _TSTRING_BYTES
        api.StringInit(place)
        api.StringCopy(place, text, len(text))
    names = (request[key].partition(":") for key in ("input", "output"))
    source, target = (
        (Output * 1)(Output(api.GraphOperationByName(graph, name.encode()), int(index)))
        for name, _, index in names
    )
    results = (c_void_p * 1)()
    api.SessionRun(
        *(session, None, source, byref(c_void_p(tensor)), 1),
        *(target, results, 1, None, 0, None, status),
    )
    check()
    assert api.TensorType(results[0]) == _FLOAT
    number = api.TensorByteSize(results[0]) // 4
    assert "tensorflow" not in sys.modules and "numpy" not in sys.modules
    print(json.dumps(list((ctypes.c_float * number).from_address(api.TensorData(results[0])))))


main(sys.argv[1])
