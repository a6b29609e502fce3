"""Runs an exported model through TensorFlow's C library, without its Python; started by tests.

    python -I c_api_client.py REQUEST.json

REQUEST.json: {"libraries": [paths, loaded in order], "operations": [paths of libraries of
operations], "model": directory, "input": "name:0", "outputs": {name: ["operation", index]},
"texts": [...]}. Prints {name: [numbers]} of float outputs as JSON.
"""

import ctypes
import json
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

_FLOAT, _STRING = 1, 7
_TSTRING_BYTES = 24


class Output(ctypes.Structure):
    _fields_ = [("operation", c_void_p), ("index", c_int)]


def main(path):
    with open(path) as file:
        request = json.load(file)
    libraries = [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in request["libraries"]]

    def function(name, result, *arguments):
        for library in libraries:
            if hasattr(library, name):
                found = getattr(library, name)
                found.restype, found.argtypes = result, arguments
                return found
        raise AttributeError(name)

    new_status = function("TF_NewStatus", c_void_p)
    get_code = function("TF_GetCode", c_int, c_void_p)
    message = function("TF_Message", c_char_p, c_void_p)
    load_library = function("TF_LoadLibrary", c_void_p, c_char_p, c_void_p)
    new_graph = function("TF_NewGraph", c_void_p)
    new_options = function("TF_NewSessionOptions", c_void_p)
    load = function(
        "TF_LoadSessionFromSavedModel",
        c_void_p,
        *(c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, c_void_p, c_void_p),
    )
    find = function("TF_GraphOperationByName", c_void_p, c_void_p, c_char_p)
    allocate = function("TF_AllocateTensor", c_void_p, c_int, POINTER(c_int64), c_int, c_size_t)
    data = function("TF_TensorData", c_void_p, c_void_p)
    byte_size = function("TF_TensorByteSize", c_size_t, c_void_p)
    tensor_type = function("TF_TensorType", c_int, c_void_p)
    copy_string = function("TF_StringCopy", None, c_void_p, c_char_p, c_size_t)
    init_string = function("TF_StringInit", None, c_void_p)
    run = function(
        "TF_SessionRun",
        None,
        *(c_void_p, c_void_p, POINTER(Output), POINTER(c_void_p), c_int),
        *(POINTER(Output), POINTER(c_void_p), c_int, POINTER(c_void_p), c_int, c_void_p, c_void_p),
    )

    status = new_status()

    def check():
        if get_code(status):
            raise SystemExit(message(status).decode())

    for name in request["operations"]:
        load_library(name.encode(), status)
        check()
    graph, options = new_graph(), new_options()
    tags = (c_char_p * 1)(b"serve")
    session = load(options, None, request["model"].encode(), tags, 1, graph, None, status)
    check()

    texts = [text.encode() for text in request["texts"]]
    shape = (c_int64 * 1)(len(texts))
    tensor = allocate(_STRING, shape, 1, _TSTRING_BYTES * len(texts))
    for number, text in enumerate(texts):
        place = data(tensor) + number * _TSTRING_BYTES
        init_string(place)
        copy_string(place, text, len(text))
    operation, index = request["input"].split(":")
    inputs = (Output * 1)(Output(find(graph, operation.encode()), int(index)))
    names = list(request["outputs"])
    wanted = [request["outputs"][name] for name in names]
    outputs = (Output * len(names))(
        *(Output(find(graph, operation.encode()), index) for operation, index in wanted)
    )
    results = (c_void_p * len(names))()
    run(
        *(session, None, inputs, byref(c_void_p(tensor)), 1),
        *(outputs, results, len(names), None, 0, None, status),
    )
    check()
    found = {}
    for name, result in zip(names, results, strict=True):
        if tensor_type(result) == _FLOAT:
            number = byte_size(result) // 4
            found[name] = list((ctypes.c_float * number).from_address(data(result)))
    assert "tensorflow" not in sys.modules and "numpy" not in sys.modules
    print(json.dumps(found))


main(sys.argv[1])
