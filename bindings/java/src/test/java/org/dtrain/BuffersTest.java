// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ShortBuffer;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Which buffers operations take, and which part of them. */
@Tag("unit")
class BuffersTest {
    private static Context context;
    private static Communicator world;

    @BeforeAll
    static void open() {
        context = Context.create();
        world = context.world();
    }

    @AfterAll
    static void close() {
        context.close();
    }

    private static void refused(String text, Buffer buffer) {
        String found = assertThrows(IllegalArgumentException.class, () -> world.allreduce(buffer))
                .getMessage();
        assertTrue(found.contains(text), found);
    }

    @Test
    void typesOfElements() {
        ByteBuffer memory = Buffers.bytes(64);
        Buffer[] views = {memory.asShortBuffer(), memory.asIntBuffer(), memory.asLongBuffer(),
            memory.asFloatBuffer(), memory.asDoubleBuffer()};
        for (Buffer view : views) {
            world.allreduce(view);
            assertEquals(0, view.position());
            assertEquals(view.capacity(), view.limit());
        }
    }

    @Test
    void fromPositionToLimit() {
        FloatBuffer all = Buffers.floats(1, 2, 3, 4, 5);
        FloatBuffer part = all.duplicate().position(1).limit(3);
        world.using(new Parameters().prescale(10)).allreduce(part);
        assertArrayEquals(new float[] {1, 20, 30, 4, 5}, Buffers.array(all));
        assertEquals(1, part.position());
        assertEquals(3, part.limit());
        FloatBuffer slice = all.slice(3, 2).position(1);
        world.allreduce(part.slice().limit(1), slice, Op.SUM);
        assertArrayEquals(new float[] {1, 20, 30, 4, 20}, Buffers.array(all));
        world.allreduce(all.duplicate().position(5));
    }

    @Test
    void halfPrecision() {
        ShortBuffer half = Buffers.bytes(4).asShortBuffer().put(0, (short) 0x3c00); // 1.0
        world.using(new Parameters().elements(DType.F16).prescale(2)).allreduce(half);
        assertEquals(0x4000, half.get(0));
        half.put(0, (short) 0x3f80); // 1.0 as bfloat16
        BlockingCollectives brains = world.using(new Parameters().elements(DType.BF16).prescale(2));
        brains.allreduce(half);
        assertEquals(0x4000, half.get(0));
        assertThrows(IllegalArgumentException.class, () -> brains.allreduce(Buffers.floats(1)));
        assertThrows(IllegalArgumentException.class, () -> brains.allreduce(Buffers.ints(1)));
        assertThrows(IllegalArgumentException.class, () -> brains.allreduce(Buffers.longs(1)));
    }

    @Test
    void anythingInBytes() {
        ByteBuffer bytes = Buffers.bytes(12).putFloat(0, 1).putFloat(4, 2);
        BlockingCollectives floats = world.using(new Parameters().elements(DType.F32).prescale(2));
        floats.allreduce(bytes.limit(8));
        assertEquals(2, bytes.getFloat(0));
        assertThrows(IllegalArgumentException.class, () -> floats.allreduce(bytes.duplicate()
                .order(ByteOrder.nativeOrder()).limit(7)));
        assertThrows(IllegalArgumentException.class, () -> floats.allreduce(bytes.duplicate()
                .order(ByteOrder.nativeOrder()).position(2).limit(6)));
        assertThrows(IllegalArgumentException.class,
                () -> floats.allreduce(bytes.duplicate().order(ByteOrder.BIG_ENDIAN)));
        // bytes have no order
        world.using(new Parameters().elements(DType.U8)).allreduce(ByteBuffer.allocateDirect(5));
    }

    /** Otherwise four floats would be summed as sixteen bytes. */
    @Test
    void bytesOfWhichNothingWasSaid() {
        ByteBuffer x = Buffers.bytes(16);
        long[] counts = {16};
        for (Collectives<?> way : List.of(world, world.start(), world.prepare(),
                world.using(new Parameters().priority(1)))) {
            refused(() -> way.allreduce(x), () -> way.allreduce(x, Op.SUM), () -> way.allreduce(x, x, Op.SUM),
                    () -> way.reduce(x, x, Op.SUM, 0), () -> way.reduceScatter(x, x, Op.SUM),
                    () -> way.reduceScatterv(x, x, counts, Op.SUM), () -> way.allgather(x, x),
                    () -> way.allgatherv(x, x, counts, null), () -> way.broadcast(x, 0),
                    () -> way.gather(x, x, 0), () -> way.gatherv(x, x, counts, null, 0),
                    () -> way.scatter(x, x, 0), () -> way.scatterv(x, x, counts, null, 0),
                    () -> way.alltoall(x, x), () -> way.alltoallv(x, counts, null, x, counts, null),
                    () -> way.send(x, 0, 0), () -> way.recv(x, 0, 0));
        }
        try (Gradients queue = world.gradients(new Gradients.Settings());
                Graph graph = world.graph(Graph.Kind.RING)) {
            refused(() -> queue.submit("x", x), () -> queue.start().submit("x", x, x, Op.SUM),
                    () -> graph.average(x), () -> graph.start().average(x), () -> graph.allgather(x, x),
                    () -> graph.alltoall(x, x));
        }
        // Tables know the type of their elements; for memory the type does not matter.
        try (Table table = world.table("bytes", new TableSettings().length(4).dtype(DType.F32))) {
            table.push(x.putFloat(4, 2));
            table.pull(x.putFloat(4, 0));
            assertEquals(2, x.getFloat(4));
        }
        context.register(x, false).close();
    }

    private static void refused(Executable... calls) {
        for (Executable call : calls) {
            String text = assertThrows(IllegalArgumentException.class, call).getMessage();
            assertTrue(text.contains("asFloatBuffer()") && text.contains("elements(DType."), text);
        }
    }

    @Test
    void othersAreRefused() {
        refused("ByteBuffer.allocateDirect", FloatBuffer.allocate(4));
        refused("ByteBuffer.allocateDirect", ShortBuffer.wrap(new short[4]));
        refused("byte order", ByteBuffer.allocateDirect(8).order(ByteOrder.BIG_ENDIAN).asFloatBuffer());
        refused("read-only", Buffers.floats(1).asReadOnlyBuffer());
        refused("CharBuffer", Buffers.bytes(4).asCharBuffer());
        refused("needs a buffer", null);
        FloatBuffer out = Buffers.floats(0);
        world.allreduce(Buffers.floats(7).asReadOnlyBuffer(), out, Op.SUM);
        assertEquals(7, out.get(0));
        world.broadcast(Buffers.floats(1).asReadOnlyBuffer(), 0);
    }
}
