"""Every public function, with each argument of a wrong type: the error is dtrain's and names the argument.

SPDX-License-Identifier: Apache-2.0
"""
import inspect
import tempfile
import unittest
from array import array

import dtrain


class Wrong:
    """An object that no function takes."""


FOLDER = tempfile.TemporaryDirectory()
context = dtrain.Context()
world = context.world
dense = world.table("dense", length=4)
rows = world.table("rows", dim=2, rule="momentum", learning_rate=0.5)
gradients = world.gradients()
compressor = world.compressor("topk", 4)
graph = world.graph("ring")


def floats(count=4):
    return array("f", bytes(4 * count))


COUNTS = {"counts": [4], "displs": [0]}
COLLECTIVES = {
    "allreduce": dict(array=floats(), out=floats(), op="sum"),
    "reduce": dict(array=floats(), out=floats(), op="sum", root=0),
    "reduce_scatter": dict(array=floats(), out=floats(), op="sum"),
    "reduce_scatterv": dict(array=floats(), out=floats(), counts=[4], op="sum"),
    "allgather": dict(array=floats(), out=floats()),
    "allgatherv": dict(array=floats(), out=floats(), **COUNTS),
    "broadcast": dict(array=floats(), root=0),
    "gather": dict(array=floats(), out=floats(), root=0),
    "gatherv": dict(array=floats(), out=floats(), **COUNTS, root=0),
    "scatter": dict(array=floats(), out=floats(), root=0),
    "scatterv": dict(array=floats(), out=floats(), **COUNTS, root=0),
    "alltoall": dict(array=floats(), out=floats()),
    "alltoallv": dict(array=floats(), send_counts=[4], out=floats(), recv_counts=[4],
                      send_displs=[0], recv_displs=[0]),
    "barrier": {},
    "send": dict(array=floats(), peer=0, tag=1),
    "recv": dict(array=floats(), peer=0, tag=1)}
COMMUNICATOR = {
    **COLLECTIVES,
    "using": dict(timeout=1, priority=1, prescale=1.0, postscale=1.0, stream=1),
    "split": dict(color=0, key=0), "subset": dict(ranks=[0]),
    "create_group": dict(ranks=[0], tag=0, timeout=1), "duplicate": {}, "shrink": {},
    "reform": dict(min_size=1, max_size=1, timeout=1),
    "abort": dict(reason="why"), "tune": dict(path=FOLDER.name + "/tuned"),
    "table": dict(name="x", dtype="f32", length=4, dim=2, rule="sgd", learning_rate=0.1, momentum=0.1,
                  beta1=0.1, beta2=0.1, epsilon=0.1, rho=0.1, clip_value=0.1, clip_norm=0.1,
                  weight_decay=0.1, l1=0.1, l2=0.1, trust=0.1, ftrl_beta=0.1, consistency="bsp",
                  staleness=1, quorum=1, reproducible=1, aggregate="sum", initial=0.1, row_length=1,
                  compensation=0.1, distribution="uniform", spread=0.1, seed=1, max_bytes=1,
                  function="f", segments=[{"first": 0}], storage_dtype="f16", wire_dtype="f16",
                  placement="hash", not_finite="drop", virtual_nodes=1, placement_block=1, key_count=1, split_bytes=1,
                  accumulator=0.1, steps="table", mean_over="pushers", schedule="cosine", memory="host",
                  warmup_steps=1, decay_steps=1, decay=0.1,
                  weights=[1], place=lambda first, count, servers: 0),
    "gradients": dict(bucket_bytes=1, cycle=1, stall_warn=1, stall_fail=1),
    "compressor": dict(kind="topk", count=4, block=8, rank=1, rows=1, matrices=[(1, 4)], seed=1, ratio=0.1),
    "graph": dict(topology="custom", neighbors={}, self_weight=1.0, out_neighbors=[])}
KEYS = {"keys": [1]}
TABLE = {
    "using": dict(timeout=1, priority=1, weight=1.0, min_version=1),
    "push": dict(values=floats(), first=0), "pull": dict(out=floats(), first=0),
    "push_pull": dict(values=floats(), out=floats(), first=0), "set": dict(values=floats(), first=0),
    "push_rows": dict(**KEYS, values=floats(2)), "pull_rows": dict(**KEYS, out=floats(2)),
    "push_pull_rows": dict(**KEYS, values=floats(2), out=floats(2)),
    "set_rows": dict(**KEYS, values=floats(2)), "erase_rows": KEYS, "count_rows": {}, "clock": {},
    "set_rate": dict(rate=0.1), "set_updates": dict(count=1), "pull_state": dict(index=0, out=floats(), first=0),
    "set_state": dict(index=0, values=floats(), first=0),
    "pull_state_rows": dict(index=0, **KEYS, out=floats(2)),
    "set_state_rows": dict(index=0, **KEYS, values=floats(2)), "set_ready": {}, "wait_ready": {},
    "set_consistency": dict(consistency="ssp", staleness=1, quorum=1, reproducible=1), "states": {},
    "locate": dict(items=[1]), "servers": {}, "stats": dict(server=0)}
GRADIENTS = {"submit": dict(name="x", array=floats(), out=floats(), op="sum"), "join": {},
             "using": dict(timeout=1, priority=1), "stats": {}}
COMPRESSOR = {"allreduce": dict(array=floats(), out=floats(), op="sum"), "reset": {}, "stats": {},
              "using": dict(timeout=1, priority=1)}
GRAPH = {"average": dict(array=floats(), out=floats()),
         "allgather": dict(array=floats(0), out=floats(0)),
         "alltoall": dict(array=floats(0), out=floats(0)),
         "using": dict(timeout=1, priority=1, stream=1), "spectral_gap": {}}
CONTEXT = {
    "join": dict(rendezvous="env", size=1, rank=0, servers=0, timeout=1, allgather=lambda mine: [mine]),
    "serve": dict(rendezvous="env", size=1, servers=1, index=0, timeout=1), "describe": {},
    "progress": {}, "allocate": dict(size=64), "register": dict(array=floats()),
    "device_memory": dict(shape=4, dtype="f32", device=0),
    "start_timeline": dict(path=FOLDER.name + "/line"), "mark_timeline": dict(name="x"),
    "stop_timeline": {}, "device_stats": dict(index=0), "set_log": dict(sink=None)}
FUNCTIONS = {
    "clip_by_global_norm": dict(arrays=[floats()], max_norm=1.0),
    "typed": dict(array=floats(), dtype="f32"),
    "save_checkpoint": dict(tables=[dense], step=1, every_steps=1, every=1, timeout=1),
    "restore_checkpoint": dict(tables=[dense], step=1, timeout=1),
    "newest_checkpoint": dict(table=dense), "server_weights": dict(workers=1, dedicated=1, serving=0),
    "wait_checkpoint": dict(tables=[dense], after=1, timeout=1),
    "describe_options": {}, "version": {}, "role": {},
    "describe_join": {"rendezvous": "tcp://h:7", "size": 2, "rank": 0, "servers": 0},
    "RecordReader": dict(paths="none", shard=0, shards=1, max_record=1),
    "RecordWriter": dict(path=FOLDER.name + "/records"),
    "Context": dict(log=None, options_file="none")}
OBJECTS = ((world, COMMUNICATOR), (dense, TABLE), (rows, TABLE), (gradients, GRADIENTS),
           (compressor, COMPRESSOR), (graph, GRAPH), (context, CONTEXT), (dtrain, FUNCTIONS))
#: Arguments that are true or false take any object.
TRUTHS = {"feedback", "leave", "newcomer", "rows_only", "shared", "signed", "stochastic"}
LATE = {"typed": "array"}  # not checked before it is used


def public_functions(thing):
    return {name for name in dir(thing) if not name.startswith("_") and
            inspect.isroutine(inspect.getattr_static(thing, name))}


class WrongTypes(unittest.TestCase):
    def refused(self, function, arguments, name):
        with self.assertRaises((TypeError, ValueError)) as caught:
            function(**{**arguments, name: Wrong()})
        text = str(caught.exception)
        self.assertIn(name, text)
        for word in ("in method", "SWIG", "swig", "argument "):
            self.assertNotIn(word, text)

    def test_each_argument(self):
        for thing, functions in OBJECTS:
            for function, arguments in functions.items():
                for name in arguments:
                    if LATE.get(function) == name:
                        continue
                    with self.subTest(f"{type(thing).__name__}.{function}", argument=name):
                        self.refused(getattr(thing, function), arguments, name)

    def test_started_and_prepared(self):
        for way in (world.start, world.prepare, world.using(priority=1), world.using().start):
            for function, arguments in COLLECTIVES.items():
                for name in arguments:
                    with self.subTest(function, argument=name):
                        self.refused(getattr(way, function), arguments, name)

    def test_options(self):
        with self.assertRaisesRegex(TypeError, "options: a mapping is needed, not Wrong"):
            dtrain.Context(Wrong())
        with self.assertRaisesRegex(TypeError, "options: a str is needed, not int"):
            dtrain.Context({3: "x"})

    def test_waits(self):
        request = world.start.barrier()
        self.refused(request.wait, {}, "timeout")
        request.wait()

    def test_inside_of_lists(self):
        for function, arguments, name in (
                (dtrain.clip_by_global_norm, {"max_norm": 1.0}, "arrays"), (world.subset, {}, "ranks"),
                (world.create_group, {}, "ranks"), (dense.locate, {}, "items"),
                (rows.erase_rows, {}, "keys"), (dtrain.RecordReader, {}, "paths"),
                (dtrain.save_checkpoint, {"step": 1}, "tables"),
                (world.table, {"name": "x"}, "weights"), (world.table, {"name": "x"}, "segments")):
            with self.subTest(function), self.assertRaises((TypeError, ValueError)) as caught:
                function(**arguments, **{name: [Wrong()]})
            self.assertIn(name, str(caught.exception))

    def test_ranges(self):
        for function, arguments, name, value in (
                (world.broadcast, {"array": floats()}, "root", 1 << 40),
                (context.allocate, {}, "size", -1), (context.device_stats, {}, "index", -1),
                (dense.push, {"values": floats()}, "first", -1)):
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"{name}: .* not between"):
                function(**arguments, **{name: value})

    def test_nothing_is_left_out(self):
        for thing, functions in OBJECTS:
            for name in public_functions(thing) - {"close"} - set(functions):
                if thing is not dtrain or not inspect.isclass(getattr(thing, name)):
                    if thing is world and name in COLLECTIVES:
                        continue
                    self.fail(f"{type(thing).__name__}.{name} is not tried")
        for thing, functions in OBJECTS:
            for function, arguments in functions.items():
                found = inspect.signature(getattr(thing, function)).parameters
                named = {name for name, parameter in found.items()
                         if parameter.kind not in (parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY)}
                self.assertLessEqual(named - TRUTHS, set(arguments), function)


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
        FOLDER.cleanup()
