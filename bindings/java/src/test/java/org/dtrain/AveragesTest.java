// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Gradient queues, compressors and graphs over several ranks. */
@Tag("ranks")
class AveragesTest {
    private static Context context;
    private static Communicator world;
    private static int rank;
    private static int size;

    @BeforeAll
    static void open() {
        context = Context.create();
        world = context.world();
        rank = world.rank();
        size = world.size();
    }

    @AfterAll
    static void close() {
        context.close();
    }

    @Test
    void queues() {
        try (Gradients queue = world.gradients(new Gradients.Settings().cycle(Duration.ofMillis(1)))) {
            List<FloatBuffer> tensors = new ArrayList<>();
            List<Request> requests = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                tensors.add(Buffers.floats(rank, i, 0));
            }
            for (int i = 0; i < 20; i++) { // each rank in its own order
                int tensor = (i + 7 * rank) % 20;
                requests.add(queue.start().submit("tensor " + tensor, tensors.get(tensor)));
            }
            requests.forEach(Request::await);
            for (int i = 0; i < 20; i++) {
                assertArrayEquals(new float[] {(size - 1) / 2f, i, 0}, Buffers.array(tensors.get(i)), 1e-5f);
            }
            FloatBuffer sum = Buffers.floats(0);
            queue.using(new Parameters().priority(1)).submit("sum", Buffers.floats(1), sum, Op.SUM);
            assertEquals(size, sum.get(0));
            assertEquals(21, queue.stats().tensors());
            int last = queue.join().peer();
            assertTrue(last >= 0 && last < size);
            assertThrows(IllegalArgumentException.class,
                    () -> queue.submit("x", Buffers.floats(1), Buffers.floats(1, 2), Op.SUM));
        }
    }

    @Test
    void compressors() {
        FloatBuffer x = context.allocate(4 * 1000).asFloatBuffer();
        try (Compressor half = world.compressor(new Compressor.Settings(Compressor.Kind.F16, 1000));
                Compressor some = world.compressor(
                        new Compressor.Settings(Compressor.Kind.TOPK, 1000).ratio(0.1).seed(3))) {
            x.put(3, rank + 1);
            half.allreduce(x, x, Op.SUM);
            assertEquals(size * (size + 1) / 2, x.get(3));
            some.startAllreduce(x, x, Op.AVG).await();
            assertEquals(size * (size + 1) / 2, x.get(3));
            assertEquals(1, half.stats().operations());
            assertTrue(half.stats().sentBytes() < half.stats().rawBytes());
            half.reset();
            assertThrows(IllegalArgumentException.class,
                    () -> half.allreduce(Buffers.floats(1), Buffers.floats(1), Op.SUM));
            assertThrows(IllegalArgumentException.class,
                    () -> half.allreduce(Buffers.ints(1), Buffers.ints(1), Op.SUM));
        }
    }

    @Test
    void severalMatrices() {
        FloatBuffer x = context.allocate(4 * 104).asFloatBuffer();
        Compressor.Settings settings = new Compressor.Settings(Compressor.Kind.POWERSGD, 104);
        try (Compressor low = world.compressor(settings.matrices(10, 10, 1, 4))) {
            x.put(102, rank + 1);
            low.allreduce(x, x, Op.SUM);
            assertEquals(size * (size + 1) / 2, x.get(102));
        }
        assertThrows(IllegalArgumentException.class, () -> settings.matrices(10, 10, 4));
        settings.matrices(10, 10);
        assertTrue(assertThrows(DtrainException.class, () -> world.compressor(settings)).getMessage()
                .contains("leave 4 elements"));
    }

    @Test
    void graphs() {
        try (Graph full = world.graph(Graph.Kind.FULL); Graph ring = world.graph(Graph.Kind.RING)) {
            FloatBuffer x = Buffers.floats(rank);
            full.average(x);
            assertEquals((size - 1) / 2f, x.get(0), 1e-5);
            assertEquals(1, full.spectralGap(), 1e-9);
            double weights = ring.selfWeight()
                    + ring.inNeighbors().stream().mapToDouble(Graph.Neighbor::weight).sum();
            assertEquals(1, weights, 1e-9);
            int neighbors = ring.inNeighbors().size();
            FloatBuffer all = Buffers.floats(new float[neighbors]);
            ring.start().allgather(Buffers.floats(rank), all).await();
            for (int i = 0; i < neighbors; i++) {
                assertEquals(ring.inNeighbors().get(i).rank(), all.get(i));
            }
            ring.alltoall(Buffers.floats(new float[ring.outNeighbors().size()]), all);
            assertEquals(0, all.get(0));
            assertThrows(IllegalArgumentException.class, () -> ring.alltoall(Buffers.floats(1), all));
            assertThrows(IllegalArgumentException.class, () -> ring.allgather(Buffers.floats(1, 2), all));
        }
        int before = (rank + size - 1) % size;
        int after = (rank + 1) % size;
        try (Graph own = world.graph(new Graph.Settings(0.5, List.of(new Graph.Neighbor(before, 0.5)))
                .out(after)); Persistent average = own.prepare().average(Buffers.floats(1))) {
            FloatBuffer x = Buffers.floats(rank);
            own.using(new Parameters().timeout(Duration.ofSeconds(10))).average(x);
            assertEquals((rank + before) / 2f, x.get(0));
            average.start();
            average.await();
        }
        assertThrows(InvalidException.class, () -> world.graph(new Graph.Settings(size)));
    }
}
