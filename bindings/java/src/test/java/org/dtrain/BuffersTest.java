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
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

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
        Buffer[] views = {memory, memory.asShortBuffer(), memory.asIntBuffer(), memory.asLongBuffer(),
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
        world.allreduce(ByteBuffer.allocateDirect(5)); // bytes have no order
    }

    @Test
    void othersAreRefused() {
        refused("ByteBuffer.allocateDirect", FloatBuffer.allocate(4));
        refused("ByteBuffer.allocateDirect", ByteBuffer.wrap(new byte[4]));
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
