"""Tables of a job of one rank, by ctypes and NumPy arrays.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import pathlib
import re

import numpy

API_VERSION = 1
DTYPES = {1: numpy.float32, 2: numpy.float64, 12: numpy.uint64}
I8 = 5  # as storage_dtype
HEADER = pathlib.Path(__file__).resolve().parent.parent.parent / "include/dtrain.h"
RULES = {name.lower(): int(number)
         for name, number in re.findall(r"^ +DTRAIN_RULE_(\w+) = (\d+)", HEADER.read_text(), re.MULTILINE)}
STEPS_TABLE = 2
SCHEDULES = {name: number for number, name in enumerate(
    "constant linear cosine exponential staircase inverse_sqrt".split(), 1)}
U32, U64, F64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_double


class Params(ctypes.Structure):
    _fields_ = [("struct_size", U32), ("dtype", U32), ("length", U64), ("rule", U32),
                ("consistency", U32), ("staleness", U32), ("aggregate", U32),
                *((name, F64) for name in ("learning_rate", "momentum", "beta1", "beta2", "epsilon",
                                           "initial")),
                ("row_length", U64),
                *((name, F64) for name in ("rho", "clip_value", "clip_norm", "weight_decay", "l1",
                                           "l2", "trust", "ftrl_beta", "compensation")),
                ("dim", U32), ("distribution", U32), ("spread", F64), ("seed", U64),
                ("max_bytes", U64), ("function", ctypes.c_char_p), ("segments", ctypes.c_void_p),
                *((name, U32) for name in ("segment_count", "reserved", "quorum", "reproducible",
                                           "storage_dtype", "wire_dtype", "placement",
                                           "virtual_nodes")),
                *((name, U64) for name in ("placement_block", "key_count", "split_bytes")),
                *((name, ctypes.c_void_p) for name in ("weights", "place", "place_arg")),
                *((name, U32) for name in ("weight_count", "given", "not_finite", "steps")),
                ("accumulator", F64), ("mean_over", U32), ("schedule", U32), ("warmup_steps", U64),
                ("decay_steps", U64), ("decay", F64)]


class Job:
    def __init__(self, library, options=(), environment=()):
        for name in list(os.environ):
            if name.startswith("DTRAIN_") or name in ("RANK", "WORLD_SIZE", "TF_CONFIG"):
                del os.environ[name]
        os.environ.update(environment)
        self.library = ctypes.CDLL(library)
        self.context, self.comm = ctypes.c_void_p(), ctypes.c_void_p()
        bag = ctypes.c_void_p()
        self.call("dtrain_options_create", ctypes.byref(bag))
        for key, value in dict(options).items():
            self.call("dtrain_options_set", bag, key.encode(), value.encode())
        self.call("dtrain_context_create", API_VERSION, bag, ctypes.byref(self.context))
        self.library.dtrain_options_destroy(bag)
        self.call("dtrain_comm_create", self.context, None, None, ctypes.byref(self.comm))

    def call(self, function, *arguments):
        if getattr(self.library, function)(*arguments) != 0:
            text = ctypes.create_string_buffer(512)
            self.library.dtrain_last_error(text, ctypes.c_size_t(len(text)))
            raise RuntimeError(f"{function}: {text.value.decode()}")

    def close(self):
        self.call("dtrain_comm_destroy", self.comm)
        self.call("dtrain_context_destroy", self.context)


class Table:
    """values: what it begins with, f32 or f64; more: members of dtrain_table_params_t"""

    def __init__(self, job, rule, values, **more):
        dtype = next(number for number, kind in DTYPES.items() if values.dtype == kind)
        params = Params(struct_size=ctypes.sizeof(Params), dtype=dtype, length=values.size,
                        rule=RULES[rule], **more)
        self.job, self.size, self.dtype = job, values.size, values.dtype
        self.handle = ctypes.c_void_p()
        job.call("dtrain_table_create", job.comm, b"table", ctypes.byref(params),
                 ctypes.byref(self.handle))
        self.move("dtrain_table_set", values)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.job.call("dtrain_table_destroy", self.handle)

    def move(self, function, array, *before, first=0):
        self.job.call(function, self.handle, *before, U64(first), U64(array.size),
                      ctypes.c_void_p(array.ctypes.data), None, None)
        return array

    def push(self, gradient, first=0):
        self.move("dtrain_table_push", numpy.ascontiguousarray(gradient, self.dtype), first=first)

    def pull(self):
        return self.move("dtrain_table_pull", numpy.empty(self.size, self.dtype))

    def set_rate(self, rate):
        self.job.call("dtrain_table_set_rate", self.handle, F64(rate), None, None)

    def states(self):
        """{name: (index, array)}"""
        found = {}
        name, dtype, count = ctypes.c_char_p(), U32(), U64()
        while self.job.library.dtrain_table_describe_state(
                self.handle, len(found), ctypes.byref(name), ctypes.byref(dtype),
                ctypes.byref(count)) == 0:
            array = numpy.empty(count.value, DTYPES[dtype.value])
            found[name.value.decode()] = (len(found), self.move("dtrain_table_pull_state", array,
                                                                len(found)))
        return found

    def set_states(self, states):
        for index, array in states.values():
            self.move("dtrain_table_set_state", array, index)
