// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Buffers on GPUs, by their addresses, give the same bits as buffers on the host. Two ranks and a server. */
@Tag("gpu")
class DeviceBuffersTest {
    private static final int COUNT = 3000;
    private static Context context;
    private static Communicator world;
    private static int tables;

    @BeforeAll
    static void open() {
        context = Context.create();
        world = context.world();
        String described = context.describe(); // the process gets CUDA later
        assertTrue(described.contains("the program has not loaded libcuda.so.1"), described);
    }

    @AfterAll
    static void close() {
        context.close();
    }

    /** A buffer on a GPU with the contents of one on the host. */
    private static Buffer copy(Buffer host) {
        long bytes = host.remaining() * (host instanceof LongBuffer ? 8L : 4L);
        long address = Gpu.allocate(bytes);
        Gpu.write(address, host, bytes);
        return context.deviceBuffer(address, host.remaining(), host instanceof LongBuffer ? DType.I64 : DType.F32);
    }

    private static float[] values(Buffer buffer) {
        FloatBuffer host = Buffers.floats(new float[buffer.remaining()]);
        Gpu.read(host, NativeJNI.address(buffer), 4L * buffer.remaining());
        return Buffers.array(host);
    }

    private static FloatBuffer ramp(int count) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = (i * 7 + world.rank() * 13) % 59 + 0.37f;
        }
        return Buffers.floats(values);
    }

    private static FloatBuffer blank(int count) {
        return Buffers.floats(new float[count]);
    }

    /** Runs every kind of call on buffers that `of` makes; returns those with results. */
    private static List<Buffer> calls(Function<Buffer, Buffer> of) {
        Buffer x = of.apply(ramp(COUNT));
        Buffer out = of.apply(blank(COUNT));
        Buffer all = of.apply(blank(2 * COUNT));
        Buffer root = of.apply(ramp(COUNT));
        Buffer received = of.apply(blank(COUNT));
        Buffer queued = of.apply(ramp(COUNT));
        Buffer compressed = of.apply(ramp(COUNT));
        Buffer pulled = of.apply(blank(COUNT));
        Buffer rows = of.apply(blank(200));
        world.allreduce(x, out, Op.AVG);
        world.using(new Parameters().prescale(0.3)).allreduce(x);
        world.start().allgather(out, all).await();
        world.broadcast(root, 1);
        Request sent = world.start().send(root, 1 - world.rank(), 3);
        assertEquals(4L * COUNT, world.recv(received, 1 - world.rank(), 3).bytes());
        sent.await();
        try (Gradients queue = world.gradients(new Gradients.Settings())) {
            queue.submit("x", queued);
            world.barrier();
        }
        try (Compressor compressor = world.compressor(new Compressor.Settings(Compressor.Kind.INT8, COUNT))) {
            compressor.allreduce(compressed, compressed, Op.SUM);
        }
        try (Table table = world.table("dense " + tables++, new TableSettings().length(COUNT).rule(Rule.SGD)
                .learningRate(0.1).consistency(Consistency.BSP))) {
            table.push(of.apply(ramp(COUNT)));
            table.clock();
            table.pull(pulled);
            world.barrier();
        }
        try (Table table = world.table("rows " + tables++, new TableSettings().dim(2).rule(Rule.SGD)
                .learningRate(0.1))) {
            long[] keys = new long[100];
            for (int i = 0; i < keys.length; i++) {
                keys[i] = 2L * i + world.rank();
            }
            LongBuffer wanted = (LongBuffer) of.apply(Buffers.longs(keys));
            table.pushRows(wanted, of.apply(ramp(200)));
            table.pullRows(wanted, rows);
            world.barrier();
        }
        return List.of(x, out, all, root, received, queued, compressed, pulled, rows);
    }

    @Test
    void sameBitsAsOnTheHost() {
        List<Buffer> expected = calls(host -> host);
        List<Buffer> found = calls(DeviceBuffersTest::copy);
        for (int i = 0; i < expected.size(); i++) {
            assertArrayEquals(Buffers.array((FloatBuffer) expected.get(i)), values(found.get(i)), "of result " + i);
        }
    }

    @Test
    void partsAndOtherTypes() {
        FloatBuffer all = (FloatBuffer) copy(Buffers.floats(1, 2, 3, 4));
        world.allreduce(all.duplicate().position(1).limit(3));
        world.allreduce(all.slice(3, 1));
        assertArrayEquals(new float[] {1, 4, 6, 8}, values(all));
        ByteBuffer host = Buffers.bytes(4).putShort(0, (short) 0x3c00).putShort(2, (short) 0x3f80); // 1, as f16 and bf16
        long address = Gpu.allocate(4);
        Gpu.write(address, host, 4);
        for (DType dtype : List.of(DType.F16, DType.BF16)) {
            Buffer one = context.deviceBuffer(address + (dtype == DType.BF16 ? 2 : 0), 1, dtype);
            world.using(new Parameters().elements(dtype)).allreduce(one);
        }
        Gpu.read(host, address, 4);
        assertEquals(0x4000, host.getShort(0));
        assertEquals(0x4000, host.getShort(2));
        for (DType dtype : DType.values()) {
            world.using(new Parameters().elements(dtype)).allreduce(
                    context.deviceBuffer(Gpu.allocate(64), 64 / dtype.bytes(), dtype), Op.MAX);
        }
    }

    @Test
    void allocated() {
        FloatBuffer expected = ramp(COUNT);
        try (DeviceAllocation memory = context.allocateOnDevice(COUNT, DType.F32, 0, true)) {
            Gpu.write(memory.address(), expected, 4L * COUNT);
            world.allreduce(memory.buffer());
            world.allreduce(expected);
            assertArrayEquals(Buffers.array(expected), values(memory.buffer()));
        }
        refused(InvalidException.class, "there is no device 99",
                () -> context.allocateOnDevice(1, DType.F32, 99, false));
        refused(IllegalArgumentException.class, "count of -1",
                () -> context.allocateOnDevice(-1, DType.F32, 0, false));
    }

    @Test
    void onStreams() {
        long stream = Gpu.stream();
        Parameters on = new Parameters().stream(stream);
        long address = Gpu.allocate(COUNT);
        Buffer x = context.deviceBuffer(address, COUNT, DType.U8);
        ByteBuffer host = Buffers.bytes(COUNT);
        List<Runnable> ways = List.of(
                () -> world.using(on.elements(DType.U8)).allreduce(x),
                () -> world.using(on.elements(DType.U8)).start().allreduce(x).await());
        for (Runnable way : ways) {
            Gpu.fillLater(stream, address, 7, COUNT);
            way.run();
            Gpu.read(host, address, COUNT);
            for (int i = 0; i < COUNT; i++) {
                assertEquals(14, host.get(i));
            }
        }
        world.using(new Parameters().stream(0).elements(DType.U8)).allreduce(x);
        BlockingCollectives notOnGpu = world.using(on.elements(DType.F32));
        refused(UnsupportedException.class, "with a buffer on an accelerator",
                () -> notOnGpu.allreduce(Buffers.floats(1)));
    }

    private static void refused(Class<? extends RuntimeException> kind, String text, Executable call) {
        String found = assertThrows(kind, call).getMessage();
        assertTrue(found.contains(text), found);
    }

    private static void wrong(String text, long address, long count, DType dtype) {
        refused(IllegalArgumentException.class, text, () -> context.deviceBuffer(address, count, dtype));
    }

    @Test
    void whatIsRefused(@TempDir Path folder) {
        long address = Gpu.allocate(16);
        wrong("address is 0", 0, 4, DType.F32);
        wrong("count of -1", address, -1, DType.F32);
        wrong("count of 536870912", address, 1 << 29, DType.F32);
        wrong("count of " + Long.MAX_VALUE, address, Long.MAX_VALUE, DType.U8);
        wrong("not a multiple of 4", address + 2, 1, DType.F32);
        wrong("dtype is null", address, 4, null);
        refused(DtrainException.class, "allocation",
                () -> world.allreduce(context.deviceBuffer(address, 5, DType.F32)));
        refused(IllegalArgumentException.class, "F32 and I32",
                () -> world.allreduce(context.deviceBuffer(address, 4, DType.F32),
                        context.deviceBuffer(address, 4, DType.I32), Op.SUM));
        Buffer x = context.deviceBuffer(address, 4, DType.F32);
        refused(IllegalArgumentException.class, "arrays[1] is the memory of a GPU",
                () -> Norms.clipByGlobalNorm(1, Buffers.floats(1), x.slice(1, 2)));
        refused(IllegalArgumentException.class, "the buffer is the memory of a GPU", () -> context.register(x, false));
        try (RecordWriter writer = new RecordWriter(folder.resolve("x"))) {
            refused(IllegalArgumentException.class, "record is the memory of a GPU", () -> writer.append(x));
        }
        try (Context without = Context.create(new Options().set("accelerators", "none"))) {
            refused(UnsupportedException.class, "the option accelerators is \"none\"",
                    () -> without.deviceBuffer(address, 4, DType.F32));
        }
        Gpu.free(address);
        refused(DtrainException.class, "it has been freed", () -> world.allreduce(x));
    }
}
