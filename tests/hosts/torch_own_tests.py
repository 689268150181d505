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
    # pylint: disable=import-outside-toplevel
    import dtrain.torch  # noqa: F401  pylint: disable=unused-import
    from torch.distributed import distributed_c10d as c10d
    make, get = c10d._new_process_group_helper, c10d.get_backend
    mpi_is_here = c10d.is_mpi_available

    def make_ours(size, rank, ranks, backend, *more, **named):
        return make(size, rank, ranks, "dtrain" if backend == AS else backend, *more, **named)

    def get_theirs(*arguments):
        found = get(*arguments)
        return AS if found == "dtrain" else found
    c10d._new_process_group_helper = make_ours
    c10d.get_backend = get_theirs
    c10d.is_mpi_available = lambda: AS == "mpi" or mpi_is_here()
    return c10d


def make_cases():
    # pylint: disable=import-outside-toplevel
    patched = make_groups_of_dtrain()
    import torch.distributed
    for name in ("get_backend", "is_mpi_available"):
        setattr(torch.distributed, name, getattr(patched, name))
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
