#!/usr/bin/python3
"""Runs torch's own tests of backends (distributed_test.py, which is in its package) with the backend "dtrain".
usage: torch_own_tests.py RANKS AS [unittest's arguments, such as -k NAME]

Most tests are for backends that they name, so a run takes those for AS ("gloo", or "mpi", which has what gloo has not),
and groups of AS are made of dtrain. Ranks are forked: torch's own runner starts new interpreters, which takes 20 s for
each test.
SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import multiprocessing
import os
import sys
import tempfile
import types
import unittest

RANKS, AS = sys.argv[1:3]
del sys.argv[1:3]
#: Tests that cannot pass, by the ends of their names, and why.
LEFT_OUT = {
    "_profiler": "asks the profiler for events that are named after gloo and MPI",
    "test_ddp_logging_data_cpu": "asks the log for a backend of the name gloo",
}


def stand_in():
    """For expecttest, which torch's test tools import, and which these tests do not use."""
    module = types.ModuleType("expecttest")
    module.TestCase = unittest.TestCase
    module.ACCEPT = False
    sys.modules["expecttest"] = module


def prepare(folder):
    os.environ.update(BACKEND=AS, WORLD_SIZE=RANKS, TEMP_DIR=folder, OMP_NUM_THREADS="1",
                      INIT_METHOD=f"file://{folder}/meeting")
    for name in ("barrier", "test_dir", "init_dir"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)


def make_groups_of_dtrain():
    """Functions of torch.distributed take AS for dtrain, and call dtrain AS."""
    # pylint: disable=import-outside-toplevel
    import dtrain.torch  # noqa: F401  pylint: disable=unused-import
    from torch import distributed as dist
    from torch.distributed import distributed_c10d as c10d

    def taking(function):
        def call(*arguments, **named):
            if named.get("backend") == AS:
                named["backend"] = "dtrain"
            return function(*["dtrain" if one == AS else one for one in arguments], **named)
        return call

    def naming(function):
        def call(*arguments):
            found = function(*arguments)
            return AS if found == "dtrain" else found
        return call
    for name, changed in (("init_process_group", taking), ("new_group", taking), ("get_backend", naming)):
        function = changed(getattr(c10d, name))
        setattr(c10d, name, function)
        setattr(dist, name, function)
    if AS == "mpi":
        dist.is_mpi_available = c10d.is_mpi_available = lambda: True


def make_cases():
    make_groups_of_dtrain()
    # pylint: disable=import-outside-toplevel
    from torch.testing._internal.distributed import distributed_test
    distributed_test.PROFILING_SUPPORTED_BACKENDS = ()

    class Dtrain(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            for end, reason in LEFT_OUT.items():
                if self._testMethodName.endswith(end):
                    self.skipTest(reason)
            super().setUp()
            self._start_processes(multiprocessing.get_context("fork").Process)

        @classmethod
        def _run(cls, *arguments, **named):
            without_replicated_tensors()
            super()._run(*arguments, **named)

    return Dtrain


def without_replicated_tensors():
    """torch 1.13 cannot import these with Python 3.11, and its tests switch them on for DistributedDataParallel."""
    try:
        # pylint: disable=import-outside-toplevel
        from torch.nn.parallel import _replicated_tensor_ddp_utils
    except ImportError:
        return
    _replicated_tensor_ddp_utils._set_ddp_with_replicated_tensor = lambda wanted: None


if __name__ == "__main__":
    if importlib.util.find_spec("expecttest") is None:
        stand_in()
    with tempfile.TemporaryDirectory() as temporary:
        prepare(temporary)
        Dtrain = make_cases()
        unittest.main()
