"""Wrong requests by the hundred: to a server, to the signatures of every export, and in Python.

A wrong request is answered with INVALID_ARGUMENT (over REST with status 400 or 404) and changes
nothing: the answer to the good request stays what it was. A request that is not refused gives
finite numbers, and each of its rows what the row alone gives; for plain texts, what offline
prediction gives. Answers of a server that are wrong end `xlnet predict --endpoint` with one
sentence. Wrong arguments in Python raise ConfigError, DataError or TypeError. Part of `make fuzz`.
"""

import collections
import contextlib
import functools
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

import grpc
import numpy as np
import psutil
import pytest
import tensorflow as tf
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from official import xlnet
from official.xlnet.errors import XLNetError
from official.xlnet.inference.task_prediction import predict_examples
from official.xlnet.serving.export import write_version
from official.xlnet.serving.graph.settings import Settings
from official.xlnet.serving.services.encoder import EncoderService
from official.xlnet.serving.services.language_model import LanguageModelService
from tests.helpers.fuzz import IS_LONG, MOST_BYTES, SECONDS, report, run, tried
from tests.helpers.mutations import VALUES, changed_bytes, changed_file
from tests.helpers.requests import TEXTS, changed_inputs, changed_tensor
from tests.helpers.served_models import (
    examples_of,
    inputs_of,
    mixed_texts,
    random_task,
    save_task,
    service_of,
    tokenizers,
)
from tests.helpers.small_language_model import small_language_model
from tests.helpers.wrong_input import strict_json
from tools.serving_stand_in import RequestError, Version

NAME = "fuzz"
LENGTHS, MOST_CHARACTERS = (11, 23), 5000
INVALID, UNKNOWN = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
KINDS = ["token_classification", "question_answering", "multiple_choice"]
if IS_LONG:
    KINDS += ["classification", "multi_label", "regression", "ranking", "encoder", "lm"]


def export(name, folder):
    """Writes a version of a kind of model; returns its path."""
    settings = Settings(LENGTHS, max_characters=MOST_CHARACTERS, max_windows=7)
    tokenizer, graph_tokenizer = tokenizers()
    if name == "encoder":
        service = EncoderService(tiny_encoder(), graph_tokenizer, settings)
    elif name == "lm":
        service = LanguageModelService(small_language_model(), graph_tokenizer, settings)
    else:
        task = {"query_length": 5, "window_stride": 5} if name == "question_answering" else {}
        model, _ = random_task(name, **task)
        service = service_of(model, lengths=LENGTHS, max_characters=MOST_CHARACTERS, max_windows=7)
    return write_version(service, str(folder / name))["path"]
