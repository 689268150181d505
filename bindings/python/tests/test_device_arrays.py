"""Arrays on GPUs in every kind of call give the same bits as arrays on the host. A job of two ranks with a server.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import gc
import itertools
import unittest
from array import array

import dtrain
from gpu_arrays import MANAGED, Current, Exporter, Interface, Memory, Older, Stream, call, driver

context = dtrain.Context()
world = context.world
try:
    import torch
except ImportError:
    torch = None

names = (f"table {number}" for number in itertools.count())
COUNT = 5000


class Host:
    """An array on the host, with the same methods."""

    def __new__(cls, values):
        return type("Copy", (array,), {"values": lambda self: array(self.typecode, self)})(values.typecode, values)


def ramp(count=COUNT, code="f"):
    return array(code, [(index * 7 + 13 * world.rank) % 59 + (0.37 if code in "fd" else 0) for index in range(count)])


def blank(count=COUNT, code="f"):
    return array(code, [0] * count)


# Each case makes its arrays by make(), runs a call, and returns those that have the results.
def in_place(make):
    x = make(ramp())
    world.allreduce(x, op="avg")
    return [x]


def out_of_place(make):
    x, out = make(ramp()), make(blank())
    world.allreduce(x, out, "prod")
    return [x, out]


def every_dtype(make):
    results = []
    for code in "dbBhHiqQ":
        x = make(ramp(code=code))
        world.allreduce(x, op="max")
        results.append(x)
    return results


def half_bits(make):  # numbers whose exponents are small
    x = make(array("H", [0x3c00 + index % 1000 for index in range(COUNT)]))
    world.allreduce(dtrain.typed(x, "f16"))
    world.allreduce(dtrain.typed(x, "bf16"), op="avg")
    return [x]


def from_the_host(make):
    x, out = ramp(), make(blank())
    world.using(prescale=0.3).allreduce(x, out)
    return [out]


def to_the_host(make):
    out = Host(blank())
    world.allreduce(make(ramp()), out)
    return [out]


def broadcast(make):
    x = make(ramp())
    world.broadcast(x, root=1)
    return [x]


def reduce_and_scatter(make):
    x, part, total = make(ramp()), make(blank(COUNT // 2)), make(blank())
    world.reduce_scatter(x, part)
    world.reduce(x, total if world.rank == 1 else None, root=1)
    world.scatter(total if world.rank == 1 else None, part, root=1)
    return [part, total]


def gathers(make):
    x, out, whole = make(ramp()), make(blank(2 * COUNT)), make(blank(2 * COUNT))
    world.allgather(x, out)
    world.gather(x, whole if world.rank == 0 else None)
    return [out, whole]


def ragged(make):
    counts = [100, 300]
    x, out, part = make(ramp(counts[world.rank])), make(blank(600)), make(blank(2 * counts[world.rank]))
    world.allgatherv(x, out, counts, array("Q", [150, 260]))
    world.alltoallv(out, counts, part, [counts[world.rank]] * 2, send_displs=[200, 0])
    return [out, part]


def exchange(make):
    out = make(blank())
    world.alltoall(make(ramp()), out)
    return [out]


def messages(make):
    x, out, peer = make(ramp()), make(blank(COUNT + 10)), 1 - world.rank
    sent = world.start.send(x, peer, 3)
    found = world.recv(out, peer, 3)
    sent.wait()
    assert (found.bytes, found.peer) == (4 * COUNT, peer)
    return [out]


def prepared(make):
    x = make(ramp())
    request = world.prepare.allreduce(x)
    for _ in range(3):
        request.start()
        request.wait()
    return [x]


def neighbors(make):
    graph, x = world.graph("ring"), make(ramp())
    graph.average(x)
    graph.close()
    return [x]


def gradients(make):
    queue, x, out = world.gradients(), make(ramp()), make(blank())
    requests = [queue.start.submit("x", x), queue.start.submit("y", make(ramp()), out, "sum")]
    for request in requests:
        request.wait()
    world.barrier()
    queue.close()
    return [x, out]


def compressor(make):
    x, out = make(ramp()), make(blank())
    with world.compressor("int8", COUNT) as of:
        of.allreduce(x, out)
        of.allreduce(x)
    return [x, out]


def dense_table(make):
    with world.table(next(names), length=COUNT, rule="sgd", learning_rate=0.1, consistency="bsp") as table:
        out, state, both = make(blank()), make(blank()), make(ramp())
        table.push(make(ramp()))
        table.clock()
        table.pull(out)
        table.push_pull(both)
        world.barrier()
        if world.rank == 0:
            table.set(make(ramp(100)), 50)
        world.barrier()
        table.pull(state)
        world.barrier()
    return [out, both, state]


def state_of_a_table(make):
    with world.table(next(names), length=COUNT, rule="adagrad") as table:
        if world.rank == 0:
            table.push(make(ramp()))
        world.barrier()
        out = make(blank())
        table.pull_state(0, out)
        world.barrier()
    return [out]


def rows(make):
    keys = make(array("q", range(world.rank, 2000, 2)))
    with world.table(next(names), dim=3, rule="sgd") as table:
        out, both = make(blank(3000)), make(ramp(3000))
        table.push_rows(keys, make(ramp(3000)))
        table.pull_rows(keys, out)
        table.push_pull_rows(keys, both)
        table.erase_rows(keys)
        world.barrier()
        assert table.count_rows().count == 0
        world.barrier()
    return [out, both]


CASES = [in_place, out_of_place, every_dtype, half_bits, from_the_host, to_the_host, broadcast, reduce_and_scatter,
         gathers, ragged, exchange, messages, prepared, neighbors, gradients, compressor, dense_table,
         state_of_a_table, rows]


class Calls(unittest.TestCase):
    def test_same_bits_as_on_the_host(self):
        other_gpu = lambda values: Exporter(values, 1)
        for case in CASES:
            expected = [result.values() for result in case(Host)]
            self.assertTrue(any(any(values) for values in expected))
            for kind, make in (("interface", Interface), ("dlpack", Exporter), ("older", Older),
                               ("second GPU", other_gpu)):
                with self.subTest(case.__name__, kind=kind):
                    results = case(make)
                    for found, wanted in zip(results, expected):
                        self.assertEqual(found.values().tobytes(), wanted.tobytes())

    def test_nothing_passes_by_the_gpu_for_the_host(self):
        def copied():
            devices = context.describe()["accelerators"][0]["devices"]
            return sum(device["to_host_bytes"] + device["to_device_bytes"] for device in devices)
        before = copied()
        world.allreduce(Interface(ramp()))
        self.assertEqual(copied() - before, 8 * COUNT)
        world.allreduce(Exporter(ramp(), kind=MANAGED))  # the host can access it
        world.allreduce(ramp())
        self.assertEqual(copied() - before, 8 * COUNT)

    def test_bfloat16_of_dlpack(self):
        values = array("H", [0x3f80, 0x4000, 0x4040])
        x, expected = Exporter(values, code=4), array("H", values)
        world.allreduce(x)
        world.allreduce(dtrain.typed(expected, "bf16"))
        self.assertEqual(x.values(), expected)

    def test_shapes_and_versions(self):
        for x in (Interface(ramp(6), shape=(2, 3)), Interface(ramp(6), shape=(2, 3), strides=(12, 4)),
                  Interface(ramp(6), version=2, stream=0), Interface(ramp(6), stream=None, mask=None),
                  Exporter(ramp(6), shape=(2, 3), strides=(3, 1)), Exporter(ramp(6), shape=(1, 6), strides=(1, 1))):
            expected = ramp(6)
            world.allreduce(expected)
            world.allreduce(x)
            self.assertEqual(x.values(), expected)

    def test_no_elements(self):
        empty = array("f")
        for x in (Interface(empty, data=(0, False)), Interface(empty), Exporter(empty)):
            world.allreduce(x)

    def test_read_only_inputs(self):
        expected = ramp()
        world.allreduce(expected)
        for x in (Interface(ramp(), readonly=True), Exporter(ramp(), flags=1)):
            out = blank()
            world.allreduce(x, out)
            self.assertEqual(out, expected)

    def test_memory_lives_as_long_as_the_operation(self):
        request = world.start.recv(Interface(blank()), 1 - world.rank)
        gc.collect()
        world.barrier()
        world.send(Interface(ramp()), 1 - world.rank)
        self.assertEqual(request.wait().bytes, 4 * COUNT)


@unittest.skipIf(torch is None, "no torch")
class Tensors(unittest.TestCase):
    """This torch has no GPUs: a tensor whose memory is elsewhere stands for one of them."""

    def make(self, values, **more):
        exporter = Exporter(values, **more)

        class OnGpu(torch.Tensor):
            __dlpack__ = staticmethod(lambda **keywords: exporter.__dlpack__(**keywords))
            __dlpack_device__ = staticmethod(exporter.__dlpack_device__)

        tensor = torch.zeros(len(values)).as_subclass(OnGpu)
        tensor.exporter = exporter
        return tensor

    def test_changes_are_counted(self):
        x, out, expected = self.make(ramp()), self.make(blank()), ramp()
        versions = x._version, out._version
        world.allreduce(x, out)
        self.assertEqual(x._version, versions[0])
        self.assertGreater(out._version, versions[1])
        world.allreduce(expected)
        self.assertEqual(out.exporter.values(), expected)

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "array: the tensor is a negated view"):
            x = self.make(ramp())
            x.is_neg = lambda: True
            world.allreduce(x)


class Refused(unittest.TestCase):
    """What fails on one rank alone, before anything is sent."""

    def refused(self, kind, text, *arguments, run=world.allreduce):
        with self.assertRaisesRegex(kind, text):
            run(*arguments)

    def test_arrays(self):
        x = ramp(4)
        for kind, text, bad in (
                (ValueError, "array: the array is read-only", Interface(x, readonly=True)),
                (ValueError, "array: the array is read-only", Exporter(x, flags=1)),
                (ValueError, "array: the array is read-only", Exporter(x, flags=2)),
                (ValueError, "array: the array is not contiguous", Interface(x, shape=(2,), strides=(8,))),
                (ValueError, "array: the array is not contiguous", Exporter(x, shape=(2, 2), strides=(1, 2))),
                (TypeError, "elements of type '<c8'", Interface(x, typestr="<c8")),
                (TypeError, "elements of type '>f4'", Interface(x, typestr=">f4")),
                (TypeError, "elements of this type", Exporter(x, code=5)),
                (TypeError, "has a mask", Interface(x, mask=Interface(x))),
                (TypeError, "version 1 of __cuda_array_interface__", Interface(x, version=1)),
                (TypeError, "version 4 of __cuda_array_interface__", Interface(x, version=4)),
                (TypeError, "without an address", Interface(x, data=None)),
                (ValueError, "names stream 0", Interface(x, stream=0)),
                (ValueError, "names stream 'x'", Interface(x, stream="x")),
                (ValueError, "4 elements at address 0", Interface(x, data=(0, False))),
                (dtrain.UnsupportedError, "on DLPack device 10", Exporter(x, kind=10)),
                (ValueError, "says that it is on DLPack device 2, and exports memory of 1", Exporter(x, exported=1))):
            with self.subTest(text, array=type(bad).__name__):
                self.refused(kind, text, bad)

    def test_results(self):
        x, out = Interface(ramp(4)), Interface(blank(3))
        self.refused(ValueError, "4 elements, the output 3", x, out)
        self.refused(TypeError, "different types", x, Exporter(blank(4, "d")))
        self.refused(ValueError, "out: the array is read-only", x, Interface(blank(4), readonly=True))
        self.refused(ValueError, "needs an output", x, None, run=world.allgather)

    def test_a_block_that_ends_outside_of_its_allocation(self):
        x = Interface(ramp(4), shape=(5,))
        self.refused(dtrain.InvalidError, "allocation", x)

    def test_freed_memory(self):
        x = Interface(ramp(4))
        x.free()
        self.refused(dtrain.InvalidError, "freed", x)
        x = Interface(ramp(4), stream=1)
        x.free()
        self.refused(dtrain.InvalidError, "array: .*was it freed", x)

    def test_what_the_host_reads(self):
        counts = Interface(array("Q", [4, 4]))
        self.refused(dtrain.UnsupportedError, "counts: the array is on a GPU", ramp(4), blank(8), counts,
                     run=world.allgatherv)
        self.refused(dtrain.UnsupportedError, r"arrays\[1\]: the array is on a GPU", [ramp(4), Exporter(ramp(4))], 1,
                     run=dtrain.clip_by_global_norm)
        self.refused(TypeError, "a list of arrays is needed", Interface(ramp(4)), 1, run=dtrain.clip_by_global_norm)

    def test_an_array_that_fails(self):
        class Broken(Exporter):
            def __dlpack__(self, **_):
                raise BufferError("no export today")

        self.refused(ValueError, "array: Broken refuses access to its memory: no export today", Broken(ramp(4)))

    def test_context_without_accelerators(self):
        with dtrain.Context(accelerators="none") as other, other.join(size=1, rank=0) as alone:
            self.refused(dtrain.UnsupportedError, 'the option accelerators is "none"', Interface(ramp(4)),
                         run=alone.allreduce)


class Torch:
    """As torch.cuda.Stream."""

    def __init__(self, stream):
        self.cuda_stream = stream.handle


class Protocol:
    def __init__(self, *found):
        self.found = found

    def __cuda_stream__(self):
        return self.found


class Streams(unittest.TestCase):
    def sum(self, byte):
        """Of all ranks' bytes."""
        return array("B", [2 * byte] * COUNT)

    def test_waits_for_the_stream_of_an_array(self):
        stream = Stream()
        x = Interface(blank(code="B"), stream=stream.handle)
        stream.hold()
        stream.fill(x, 7)
        world.allreduce(x)
        self.assertEqual(x.values(), self.sum(7))

    def test_waits_for_the_default_stream_of_arrays_that_name_none(self):
        stream = Stream(handle=1)
        x = Interface(blank(code="B"), version=2)
        stream.hold()
        stream.fill(x, 7)
        world.allreduce(x)
        self.assertEqual(x.values(), self.sum(7))

    def test_waits_for_the_producer_of_a_tensor(self):
        stream = Stream()
        for run in (world.allreduce, lambda x: world.start.allreduce(x).wait(),
                    lambda x: world.gradients().submit("x", x, op="sum")):
            x = Exporter(blank(code="B"), producer=stream)
            stream.hold()
            stream.fill(x, 7)
            run(x)
            self.assertEqual(x.asked, 1)
            self.assertEqual(x.values(), self.sum(7))
            world.barrier()

    def test_managed_memory(self):
        stream = Stream()
        x = Exporter(blank(code="B"), kind=MANAGED, producer=stream)
        stream.hold()
        stream.run(lambda: ctypes.memset(x.address, 7, x.size))
        world.allreduce(x)
        self.assertEqual(bytes((ctypes.c_ubyte * x.size).from_address(x.address)), self.sum(7).tobytes())

    def test_on_a_stream(self):
        stream = Stream()
        for given in (stream.handle, Torch(stream), Protocol(0, stream.handle)):
            on = world.using(stream=given, timeout=20)
            x, after = Interface(blank(code="B"), stream=stream.handle), Memory(blank(code="B"))
            stream.hold()
            stream.fill(x, 7)
            request = on.start.allreduce(x)
            self.assertFalse(request.done())  # it waits for the stream, the host does not
            with Current():
                call("cuMemcpyAsync", ctypes.c_uint64(after.address), ctypes.c_uint64(x.address),
                     ctypes.c_size_t(x.size), ctypes.c_void_p(stream.handle))
            stream.fill(x, 9)
            stream.synchronize()
            request.wait()
            self.assertEqual(after.values(), self.sum(7))
            self.assertEqual(x.values(), array("B", [9] * COUNT))
            del request, x, after  # now: freeing memory waits for streams, also for the next call's

    def test_blocking_calls_have_their_results(self):
        stream = Stream()
        on = world.using(stream=stream.handle)
        x = Exporter(blank(code="B"), producer=stream)
        stream.hold()
        stream.fill(x, 7)
        on.allreduce(x)
        self.assertEqual(x.asked, stream.handle)
        self.assertEqual(x.values(), self.sum(7))
        prepared = on.prepare.allreduce(x)
        for factor in (2, 4):
            prepared.start()
            prepared.wait()
            self.assertEqual(x.values(), array("B", [14 * factor] * COUNT))
        del prepared
        with world.graph("ring") as graph:
            mean, expected = Interface(ramp()), ramp()
            graph.using(stream=stream.handle).average(mean)
            graph.average(expected)
            self.assertEqual(mean.values(), expected)

    def test_default_streams(self):
        for handle in (0, 1, 2):
            x = Exporter(ramp())
            world.using(stream=handle).allreduce(x)
            self.assertEqual(x.asked, handle or 1)
            expected = ramp()
            world.allreduce(expected)
            self.assertEqual(x.values(), expected)

    def test_another_stream_than_that_of_the_array(self):
        stream, own = Stream(), Stream()
        x = Interface(blank(code="B"), stream=own.handle)
        own.hold()
        own.fill(x, 7)
        world.using(stream=stream.handle).allreduce(x)
        self.assertEqual(x.values(), self.sum(7))

    def test_messages(self):
        stream = Stream()
        on, peer = world.using(stream=stream.handle), 1 - world.rank
        x, out = Interface(blank(code="B")), Interface(blank(code="B"))
        stream.hold()
        stream.fill(x, 7)
        sent = on.start.send(x, peer)
        self.assertEqual(on.recv(out, peer).bytes, COUNT)
        sent.wait()
        self.assertEqual(out.values(), x.values())

    def test_refused(self):
        stream, x = Stream(), Interface(ramp())
        for kind, text, given in (
                (TypeError, "stream: the handle of a CUDA stream", "x"), (TypeError, "not bool", True),
                (TypeError, "not float", 1.0), (dtrain.InvalidError, "-1 is not the handle", -1),
                (ValueError, "is not the handle", 1 << 64), (TypeError, "version 9", Protocol(9, 1)),
                (TypeError, "no pair", Protocol(1)), (TypeError, "stream: .*not Protocol", Protocol(0, None))):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                world.using(stream=given)
        on = world.using(stream=stream.handle)
        with self.assertRaisesRegex(dtrain.UnsupportedError, "with a buffer on an accelerator"):
            on.allreduce(ramp())
        with self.assertRaisesRegex(dtrain.InvalidError, "primary context of cuda0"):
            world.using(stream=Stream(1).handle).allreduce(x)
        with self.assertRaises(TypeError):
            world.table(next(names), length=4).using(stream=1)

    def test_captured_stream(self):
        stream, graph = Stream(), ctypes.c_void_p()
        with Current():
            call("cuStreamBeginCapture_v2", ctypes.c_void_p(stream.handle), 0)
        try:
            with self.assertRaisesRegex(dtrain.StateError, "array: the array's stream is being captured"):
                world.allreduce(Interface(ramp(), stream=stream.handle))
        finally:
            with Current():
                call("cuStreamEndCapture", ctypes.c_void_p(stream.handle), ctypes.byref(graph))

    def test_driver_fails(self):
        x = Interface(ramp(), stream=Stream().handle)
        for function in ("cuPointerGetAttributes", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2",
                         "cuStreamIsCapturing", "cuStreamSynchronize"):
            driver.fakecuda_fail(function.encode())
            try:
                with self.subTest(function), self.assertRaisesRegex(
                        dtrain.DeviceError, f"array: .*{function} failed: CUDA_ERROR_UNKNOWN"):
                    world.allreduce(x)
            finally:
                driver.fakecuda_fail(b"")


def tearDownModule():
    assert driver.fakecuda_complaints() == 0, "the driver has complained, see above"


if __name__ == "__main__":
    try:
        unittest.main()
    finally:
        context.close()
