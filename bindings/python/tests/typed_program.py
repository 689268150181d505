"""A program that uses all of the API, for mypy --strict and pyright; it also runs.

SPDX-License-Identifier: Apache-2.0
"""
import asyncio
from array import array
from datetime import timedelta
from typing import Dict, List, Optional

import dtrain
from dtrain import launch


def collectives(world: dtrain.Communicator) -> None:
    x, out, counts = array("f", [1.0]), array("f", [0.0]), [1]
    world.allreduce(x)
    world.allreduce(x, out, "avg")
    world.allreduce(dtrain.typed(x, "f32"), op=dtrain.MAX)
    world.reduce(x, out, dtrain.Op.SUM, root=0)
    world.reduce_scatterv(x, out, counts)
    world.allgatherv(x, out, counts, [0])
    world.broadcast(x, root=0)
    world.barrier()
    request: dtrain.Request = world.start.allreduce(x)
    result: dtrain.Result = request.wait(timedelta(seconds=5))
    print(result.bytes, result.peer)
    sent = world.start.send(x, 0, tag=1)
    received: dtrain.Result = world.recv(out, tag=1)
    print(received.peer, sent.wait("5s").bytes)
    prepared = world.using(timeout="5s", priority=1, prescale=0.5).prepare.allreduce(x)
    prepared.start()
    prepared.wait(5)
    print(world.using(stream=1).start)  # for arrays on a GPU
    part: Optional[dtrain.Communicator] = world.split(0)
    if part is not None:
        part.close()
    failed: List[int] = world.failed
    print(failed, world.rank + world.size)


def tables(world: dtrain.Communicator) -> None:
    table: dtrain.Table = world.table("weights", length=4, rule="sgd", learning_rate=0.1, dtype="f32")
    table.using(timeout=5.0).push(array("f", [1.0] * 4))
    version: int = table.pull(array("f", [0.0] * 4)).version
    rows = world.table("rows", dim=1, rule=dtrain.Rule.ASSIGN, consistency="async", placement="hash")
    rows.push_rows([1, 2], array("f", [1.0, 2.0]))
    mixed = world.table("mixed", length=4, row_length=4, segments=[
        {"first": 0, "count": 2, "rule": "sgd"}, {"first": 2, "count": 2, "rule": "adam"}])
    decaying = world.table("decaying", dim=1, rule="adam", steps="table", schedule=dtrain.Schedule.COSINE,
                           warmup_steps=10, decay_steps=100, decay=0.1, aggregate="avg", consistency="bsp",
                           mean_over=dtrain.MeanOver.PUSHERS, memory=dtrain.TableMemory.HOST)
    print(decaying.dtype, dtrain.Steps.TABLE.name)
    world.table("begun", length=4, row_length=4, segments=[
        {"first": 0, "count": 4, "rule": "adagrad", "accumulator": 0.1}]).close()
    states: Dict[str, dtrain.State] = mixed.states()
    servers: List[int] = rows.locate([1, 2])
    norm: float = dtrain.clip_by_global_norm([array("f", [3.0]), array("d", [4.0])], max_norm=1.0)
    print(norm)
    print(version, states, servers, rows.count_rows().count, table.stats()["requests"])


def others(context: dtrain.Context, world: dtrain.Communicator) -> None:
    queue: dtrain.Gradients = world.gradients(cycle="1ms", stall_warn=30, stall_fail=float("inf"))
    submitted: dtrain.Request = queue.start.submit("x", array("f", [1.0]), op="sum")
    submitted.wait()
    compressor: dtrain.Compressor = world.compressor("topk", 4, ratio=0.5)
    compressor.allreduce(array("f", [1.0] * 4))
    graph: dtrain.Graph = world.graph("ring")
    graph.average(array("f", [1.0]))
    weights: Dict[int, float] = graph.in_neighbors
    with context.allocate(64) as memory:
        print(memory.size, weights, dtrain.describe_options()[0].key)
    try:
        world.using(timeout=0.001).recv(bytearray(1), 0)
    except dtrain.TimeoutError as error:
        print(error.text, error.rank, error.status, error.name)


async def awaited(world: dtrain.Communicator) -> int:
    result: dtrain.Result = await world.start.allreduce(array("f", [1.0]))
    return result.bytes


def launching() -> None:
    job: launch.Job = launch.launch_workers(1, "sh", args=["-c", "echo launched"], cpu=1, memory="64MiB", env={"A": 1},
                                            progress=False)
    outcome: launch.Outcome = launch.await_workers(job, timeout_seconds="30s").check()
    workers: List[launch.Worker] = outcome.succeeded
    print(workers[0].tail(), job[0].address, [worker.reason for worker in outcome.failed])
    results: List[object] = launch.run_cluster(1, 0, "true", timeout_seconds=30, progress=False)
    launch.stop_workers(job.ids)
    print(results)


def log(level: str, line: str) -> None:
    print(level, line)


if __name__ == "__main__":
    launching()
    with dtrain.Context({"op.timeout": "30s"}, log=log, transports="tcp") as job:
        everyone = job.world
        collectives(everyone)
        tables(everyone)
        others(job, everyone)
        asyncio.run(awaited(everyone))
