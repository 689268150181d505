"""Runs a function as the ranks of a job that uses Horovod's API, in processes forked from the test.

SPDX-License-Identifier: Apache-2.0
"""
import os

import torch_ranks  # ends the test where torch is missing

import dtrain.horovod.torch as hvd

TIMEOUT = 60.0


def _member(rank, size, path, function, environment, arguments):
    os.environ.update({"DTRAIN_RENDEZVOUS": f"file://{path}", "DTRAIN_RANK": str(rank), "DTRAIN_SIZE": str(size),
                       "DTRAIN_OP_TIMEOUT": "60s", **environment})
    hvd.init()
    found = function(rank, size, *arguments)
    if hvd.is_initialized():
        hvd.shutdown()
    return found


def run(size, function, *arguments, lost=(), **environment):
    """What function(rank, size, *arguments) returns on each rank, between init() and shutdown()."""
    return torch_ranks.run(size, _member, function, environment, arguments, backend=None, lost=lost)


def refusal(function, *arguments, kind=hvd.HorovodInternalError, **named):
    """The error of a call that must fail, as text."""
    try:
        found = function(*arguments, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"{function.__name__} should have failed; it returned {found}")
