"""Tables on two workers and one server: dense, sparse, rules, clocks, state, checkpoints.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
import time
import unittest
from array import array

import dtrain

context = dtrain.Context()
world = context.world
RANK, SIZE = world.rank, world.size
STEP = time.time_ns()  # unique in a folder that earlier runs may have used


def floats(*values):
    return array("f", values)


class Dense(unittest.TestCase):
    def table(self, **settings):
        table = world.table(self.id(), length=8, **settings)
        self.addCleanup(table.close)
        self.addCleanup(world.barrier)
        return table

    def test_push_and_pull(self):
        table = self.table()
        result = table.push(floats(1, 2), first=RANK)
        self.assertGreaterEqual(result.version, 1)
        world.barrier()
        out = floats(*[0] * 8)
        table.pull(out)
        self.assertEqual(out, floats(1, 3, 2, 0, 0, 0, 0, 0))

    def test_rule(self):
        table = self.table(rule=dtrain.Rule.SGD, learning_rate=0.5, initial=1,
                           consistency=dtrain.Consistency.BSP, aggregate=dtrain.AVG)
        gradient = floats(*[RANK * 2] * 8)
        out = floats(*[0] * 8)
        table.push_pull(gradient, out)
        self.assertEqual(out, floats(*[0.5] * 8))
        table.push_pull(gradient)
        self.assertEqual(gradient, floats(*[0] * 8))

    def test_weights(self):
        table = self.table(rule=dtrain.Rule.ASSIGN, consistency=dtrain.Consistency.BSP,
                           aggregate=dtrain.AVG)
        table.using(weight=1 + 2 * RANK).push(floats(*[4 * RANK] * 8))
        table.clock()
        out = floats(0)
        table.pull(out, first=3)
        self.assertEqual(out[0], 3)

    def test_requests(self):
        table = self.table()
        table.start.push(floats(*[1] * 8)).wait()
        out = floats(*[0] * 8)

        async def pull():
            return await table.using(min_version=SIZE).start.pull(out)
        self.assertEqual(asyncio.run(pull()).bytes, 32)
        self.assertEqual(out, floats(*[SIZE] * 8))

    def test_state(self):
        table = self.table(rule=dtrain.Rule.MOMENTUM, learning_rate=1)
        state = table.states()["momentum"]
        self.assertEqual((state.dtype, state.count), (dtrain.F32, 8))
        if RANK == 0:
            table.set_state(state.index, floats(5, 6), first=1)
            out = floats(0, 0, 0)
            table.pull_state(state.index, out)
            self.assertEqual(out, floats(0, 5, 6))
            table.set_rate(0.25)
            table.set_updates(7)
            for count in (2**54, -1):
                with self.assertRaises(ValueError):
                    table.set_updates(count)
            with self.assertRaises(TypeError):
                table.pull_state(state.index, array("d", [0]))
            with self.assertRaises(dtrain.NotFoundError):
                table.pull_state(9, out)

    def test_segments(self):
        table = self.table(row_length=4, segments=[
            {"rule": dtrain.Rule.ADD, "first": 0, "count": 1},
            {"rule": dtrain.Rule.SGD, "first": 1, "count": 3, "learning_rate": 0.5}])
        if RANK == 0:
            values = floats(*[1] * 8)
            table.push_pull(values)
            self.assertEqual(values, floats(1, -0.5, -0.5, -0.5, 1, -0.5, -0.5, -0.5))

    def test_what_is_given_is_taken_or_refused(self):
        """A zero that is given does not mean the default."""
        values = floats(*[1] * 8)
        for number, (settings, expected) in enumerate((
                ({"rule": "sgd", "learning_rate": 0}, 0),
                ({"rule": "momentum", "momentum": 0, "learning_rate": 1}, -SIZE * 2),
                ({"row_length": 8, "segments": [{"rule": "momentum", "first": 0, "count": 8,
                                                 "momentum": 0, "learning_rate": 1}]}, -SIZE * 2),
                ({"row_length": 8, "segments": [{"rule": "sgd", "first": 0, "count": 8,
                                                 "learning_rate": 0}]}, 0))):
            with world.table(f"{self.id()}{number}", length=8, **settings) as table:
                table.push(values)
                table.push(values)
                world.barrier()
                out = floats(*[5] * 8)
                table.pull(out)
                self.assertEqual(out[3], expected)
                world.barrier()
        for settings in ({"rule": "sgd", "momentum": 0}, {"learning_rate": 0.1}, {"rule": 0},
                         {"consistency": 0}, {"storage_dtype": 0}, {"max_bytes": 0},
                         {"placement": "consistent", "virtual_nodes": 0}, {"staleness": 1},
                         {"placement": "greedy", "split_bytes": 0}, {"placement_block": 0},
                         {"key_count": 0}, {"rule": "sgd", "learning_rate": -1}):
            with self.assertRaisesRegex(dtrain.InvalidError, list(settings)[-1]):
                world.table("refused", length=8, **settings)
        with self.assertRaisesRegex(dtrain.InvalidError, "weight"):
            self.table(aggregate="avg", consistency="bsp").using(weight=0)
        for name, refused in (("bucket_bytes", lambda: world.gradients(bucket_bytes=0)),
                              ("rank", lambda: world.compressor("powersgd", 8, rank=0)),
                              ("ratio", lambda: world.compressor("topk", 8, ratio=0)),
                              ("size", lambda: context.join(size=0)),
                              ("rank: 1, without", lambda: context.join(rank=1)),
                              ("max_record", lambda: dtrain.RecordReader("x", max_record=0))):
            with self.assertRaisesRegex(dtrain.InvalidError, name):
                refused()

    def test_what_is_not_finite(self):
        table = self.table(not_finite="drop")
        if RANK == 0:
            table.push(floats(1, float("nan")))
            table.push(floats(1, 2))
            self.assertEqual(table.stats()["not_finite"], 1)
            out = floats(0, 0)
            table.pull(out)
            self.assertEqual(out, floats(1, 2))
        with world.table("refuses", length=8, not_finite="refuse") as refusing:
            with self.assertRaisesRegex(dtrain.InvalidError, f"worker {RANK} pushed to element, or key, 3"):
                refusing.push(floats(0, 0, 0, float("inf")))
            world.barrier()

    def test_numbers_arrive(self):
        """Valid settings make a table; differences between ranks and invalid settings are refused."""
        decaying = {"rule": "adam", "steps": "table", "schedule": "cosine", "warmup_steps": 3,
                    "decay_steps": 9, "decay": 0.25}
        averaged = {"length": None, "dim": 2, "consistency": "bsp", "aggregate": "avg", "mean_over": "pushers"}
        parts = [{"first": 0, "count": 1, "rule": "ftrl", "accumulator": 0.5},
                 {"first": 1, "count": 3, "rule": "sgd"}]
        for number, (settings, name, other) in enumerate((
                (decaying, "steps", dtrain.Steps.OWN), (decaying, "schedule", "linear"),
                (decaying, "warmup_steps", 4), (decaying, "decay_steps", 10), (decaying, "decay", 0),
                (averaged, "mean_over", dtrain.MeanOver.WORKERS), ({}, "memory", "cuda"),
                ({"rule": "adagrad", "accumulator": 0.5}, "accumulator", 0),
                ({"row_length": 4, "segments": parts}, "segments",
                 [{**parts[0], "accumulator": 0}, parts[1]]))):
            with self.subTest(name):
                settings = {"length": 8, **settings}
                world.table(f"{self.id()}{number}", **settings).close()
                told = "segment 0 accumulator" if name == "segments" else name
                with self.assertRaisesRegex(dtrain.MismatchError, rf"\b{told}\b"):
                    world.table(f"{self.id()}{number}", **{**settings, name: other} if RANK else settings)
        for number, schedule in enumerate(("linear", dtrain.Schedule.EXPONENTIAL, "stair-case", "inverse_sqrt")):
            decay = {} if schedule == "inverse_sqrt" else {"decay": 0.5}
            world.table(f"{self.id()} {number}", length=8, rule="sgd", schedule=schedule, decay_steps=9,
                        **decay).close()
        for settings, text in (
                ({"rule": "sgd", "steps": "table"}, "steps is not valid"),
                ({"rule": "sgd", "schedule": "cosine"}, "decay_steps is not valid"),
                ({"rule": "sgd", "decay_steps": 9}, "decay_steps is not valid"),
                ({"rule": "sgd", "schedule": "exponential", "decay_steps": 9}, "decay is not valid"),
                ({"rule": "assign", "schedule": "linear", "decay_steps": 9}, "schedule is not valid"),
                ({"warmup_steps": 1}, "warmup_steps is not valid"),
                ({"aggregate": "avg", "mean_over": "pushers"}, "mean_over is not valid"),
                ({"rule": "adagrad", "accumulator": -1}, "accumulator is not valid"),
                ({"rule": "sgd", "accumulator": 0}, "accumulator is given, which the rule sgd"),
                ({"row_length": 8, "segments": [{"count": 8, "rule": "sgd", "accumulator": 0}]},
                 "segment 0: accumulator is given, which the rule sgd"),
                ({"steps": 0}, "steps: there is no Steps 0"),
                ({"schedule": "cosinus"}, "schedule: Schedule has no 'cosinus'; .*inverse_sqrt"),
                ({"mean_over": "all"}, "mean_over: MeanOver has no 'all'; it is one of workers, pushers")):
            with self.subTest(text), self.assertRaisesRegex(dtrain.InvalidError, text):
                world.table("refused", length=8, **settings)

    def test_memory(self):
        for number, memory in enumerate((None, "host", dtrain.TableMemory.HOST)):
            world.table(f"{self.id()}{number}", length=8, memory=memory).close()
        with self.assertRaisesRegex(dtrain.UnsupportedError, "sparse tables are in host memory only"):
            world.table("refused", dim=2, memory="cuda")
        with self.assertRaisesRegex(dtrain.InvalidError, "memory: TableMemory has no 'gpu'; it is one of host, cuda"):
            world.table("refused", length=8, memory="gpu")

    def test_placement(self):
        table = self.table(placement=dtrain.Placement.USER, placement_block=4,
                           place=lambda first, count, servers: servers - 1)
        last = len(table.servers()) - 1
        self.assertEqual(table.locate(range(8)), [last] * 8)
        self.assertEqual(table.servers()[last]["elements"], 8)

    def test_change_of_mode(self):
        table = self.table()
        table.set_consistency(consistency=dtrain.Consistency.BSP)
        table.push(floats(1))
        table.clock()
        out = floats(0)
        table.pull(out)
        self.assertEqual(out[0], SIZE)

    def test_ready(self):
        table = self.table()
        if RANK == 0:
            table.set(floats(*range(8)))
            table.set_ready()
        table.using(timeout=20).wait_ready()
        out = floats(*[0] * 8)
        table.pull(out)
        self.assertEqual(out, floats(*range(8)))

    def test_refusals(self):
        table = self.table()
        for kind, call in ((TypeError, lambda: table.push(array("d", [1]))),
                           (ValueError, lambda: table.push(None)),
                           (ValueError, lambda: table.push(floats(*[0] * 9))),
                           (ValueError, lambda: table.push_rows([1], floats(1)))):
            with self.assertRaises(kind):
                call()
        with self.assertRaisesRegex(TypeError, "no parameter 'lenght'"):
            world.table("wrong", lenght=8)

    def test_stats(self):
        table = self.table()
        table.push(floats(1, 2, 3))
        stats = table.stats()
        self.assertGreaterEqual(stats["elements"], 3)
        self.assertEqual(sum(stats["latency"]), stats["requests"])

    def test_checkpoint(self):
        table = self.table()
        if RANK == 0:
            table.set(floats(*range(8)))
            self.assertTrue(dtrain.save_checkpoint([table], STEP))
            table.set(floats(*[0] * 8))
            self.assertEqual(dtrain.newest_checkpoint(table), STEP)
            self.assertEqual(dtrain.wait_checkpoint([table], timeout="60s"), STEP)
            with self.assertRaisesRegex(dtrain.TimeoutError, f"waited 0.[34].*newer than step {STEP}"):
                dtrain.wait_checkpoint([table], STEP, timeout=0.3)
            self.assertEqual(dtrain.restore_checkpoint([table]), STEP)
            with self.assertRaises(dtrain.NotFoundError):
                dtrain.restore_checkpoint([table], STEP + 1)
            out = floats(*[1] * 8)
            table.pull(out)
            self.assertEqual(out, floats(*range(8)))
        self.assertIsNone(table.restored)


class Sparse(unittest.TestCase):
    def test_rows(self):
        with world.table("rows", dim=2, initial=1) as table:
            keys = array("Q", [3, 2**63, 3])
            if RANK == 0:
                table.push_rows(keys, floats(1, 2, 3, 4, 5, 6))
                out = floats(*[0] * 4)
                table.pull_rows([3, 9], out)
                self.assertEqual(out, floats(7, 9, 1, 1))
                self.assertEqual(table.count_rows().count, 2)
                values = floats(1, 1)
                table.push_pull_rows([2**63], values)
                self.assertEqual(values, floats(5, 6))
                table.erase_rows([3])
                table.set_rows([4, 5], floats(1, 2, 3, 4))
                self.assertEqual(table.start.count_rows().wait().count, 3)
                for kind, bad in ((ValueError, floats(1)), (TypeError, array("d", [1, 2]))):
                    with self.assertRaises(kind):
                        table.push_rows([1], bad)
            world.barrier()

    def test_state_of_rows(self):
        with world.table("state", dim=2, rule=dtrain.Rule.MOMENTUM) as table:
            if RANK == 0:
                table.push_rows([1], floats(1, 2))
                out = floats(0, 0)
                table.pull_state_rows(table.states()["momentum"].index, [1], out)
                self.assertEqual(out, floats(1, 2))
                table.set_state_rows(0, [1], floats(7, 8))
                table.pull_state_rows(0, [1], out)
                self.assertEqual(out, floats(7, 8))
            world.barrier()


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
