// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.FloatBuffer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Counts that would make C read or write beyond a buffer's end. */
@Tag("unit")
class ShapesTest {
    private static final long[] TWO = {2};
    private final FloatBuffer three = Buffers.floats(1, 2, 3);
    private final FloatBuffer two = Buffers.floats(0, 0);

    private interface Call {
        void on(Communicator world);
    }

    private static void refused(Communicator world, Call call) {
        assertThrows(IllegalArgumentException.class, () -> call.on(world));
    }

    @Test
    void countsThatDoNotFit() {
        try (Context context = Context.create(); Communicator world = context.world()) {
            refused(world, w -> w.allreduce(three, two, Op.SUM));
            refused(world, w -> w.allreduce(three, Buffers.ints(1, 2, 3), Op.SUM));
            refused(world, w -> w.reduce(three, two, Op.SUM, 0));
            refused(world, w -> w.reduceScatter(three, two, Op.SUM));
            refused(world, w -> w.allgather(three, two));
            refused(world, w -> w.gather(three, two, 0));
            refused(world, w -> w.gather(three, null, 0));
            refused(world, w -> w.scatter(three, two, 0));
            refused(world, w -> w.scatter(null, two, 0));
            refused(world, w -> w.alltoall(three, two));
            refused(world, w -> w.reduceScatterv(two, three, TWO, Op.SUM));
            refused(world, w -> w.reduceScatterv(three, two, null, Op.SUM));
            refused(world, w -> w.reduceScatterv(three, two, new long[] {1, 1}, Op.SUM));
            refused(world, w -> w.allgatherv(three, two, TWO, null));
            refused(world, w -> w.allgatherv(two, three, TWO, new long[] {2}));
            refused(world, w -> w.allgatherv(two, three, TWO, new long[] {-1}));
            refused(world, w -> w.allgatherv(two, three, TWO, new long[] {Long.MAX_VALUE}));
            refused(world, w -> w.allgatherv(two, three, new long[] {-2}, null));
            refused(world, w -> w.gatherv(two, three, TWO, new long[] {2}, 0));
            refused(world, w -> w.scatterv(three, two, TWO, new long[] {2}, 0));
            refused(world, w -> w.alltoallv(three, TWO, null, two, new long[] {3}, null));
            refused(world, w -> w.alltoallv(three, TWO, new long[] {2}, two, TWO, null));
            refused(world, w -> w.alltoallv(three, TWO, null, two, TWO, new long[0]));
        }
    }

    @Test
    void aLongerBufferMayHoldTheBlocks() {
        try (Context context = Context.create(); Communicator world = context.world()) {
            world.allgatherv(Buffers.floats(7), three, new long[] {1}, new long[] {2});
            assertArrayEquals(new float[] {1, 2, 7}, Buffers.array(three));
        }
    }
}
