// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.time.Duration;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Every collective over several ranks, in place and out of place, in every way to run it. */
@Tag("ranks")
class RanksTest {
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

    /** f(0), ..., f(count - 1) */
    private static IntBuffer ints(int count, java.util.function.IntUnaryOperator f) {
        return Buffers.ints(IntStream.range(0, count).map(f).toArray());
    }

    private static void expect(IntBuffer expected, IntBuffer found) {
        assertArrayEquals(Buffers.array(expected), Buffers.array(found));
    }

    private static int sum(java.util.function.IntUnaryOperator ofRank) {
        return IntStream.range(0, size).map(ofRank).sum();
    }

    @Test
    void reductions() {
        IntBuffer x = ints(5, i -> rank + i);
        IntBuffer out = ints(5, i -> 0);
        world.allreduce(x, out, Op.SUM);
        expect(ints(5, i -> sum(r -> r + i)), out);
        world.allreduce(x, Op.MAX);
        expect(ints(5, i -> size - 1 + i), x);
        FloatBuffer mean = Buffers.floats(rank);
        world.allreduce(mean, Op.AVG);
        assertEquals((size - 1) / 2f, mean.get(0));
        x = ints(5, i -> rank + i);
        world.reduce(x, rank == 1 ? out : null, Op.MIN, 1);
        expect(rank == 1 ? ints(5, i -> i) : ints(5, i -> sum(r -> r + i)), out);
        world.reduce(x, x, Op.SUM, 0);
        expect(rank == 0 ? ints(5, i -> sum(r -> r + i)) : ints(5, i -> rank + i), x);
    }

    @Test
    void scattered() {
        IntBuffer x = ints(2 * size, i -> i + rank);
        IntBuffer out = ints(2, i -> 0);
        world.reduceScatter(x, out, Op.SUM);
        expect(ints(2, i -> sum(r -> 2 * rank + i + r)), out);
        world.reduceScatter(x, x.duplicate().position(2 * rank).limit(2 * rank + 2), Op.SUM);
        expect(out, x.duplicate().position(2 * rank).limit(2 * rank + 2));
        long[] counts = IntStream.range(0, size).mapToLong(r -> r + 1).toArray();
        int first = rank * (rank + 1) / 2;
        IntBuffer own = ints(rank + 1, i -> 0);
        world.reduceScatterv(ints(size * (size + 1) / 2, i -> i), own, counts, Op.SUM);
        expect(ints(rank + 1, i -> size * (first + i)), own);
        world.scatter(rank == 1 ? ints(2 * size, i -> 10 * i) : null, out, 1);
        expect(ints(2, i -> 10 * (2 * rank + i)), out);
        world.scatterv(rank == 0 ? ints(size * (size + 1) / 2, i -> i) : null, own, counts, null, 0);
        expect(ints(rank + 1, i -> first + i), own);
    }

    @Test
    void gathered() {
        IntBuffer all = ints(2 * size, i -> -1);
        world.allgather(ints(2, i -> 2 * rank + i), all);
        expect(ints(2 * size, i -> i), all);
        world.allgather(all.duplicate().position(2 * rank).limit(2 * rank + 2), all);
        expect(ints(2 * size, i -> i), all);
        long[] counts = IntStream.range(0, size).mapToLong(r -> r).toArray();
        long[] displs = IntStream.range(0, size).mapToLong(r -> 1 + r * (r - 1) / 2).toArray();
        IntBuffer packed = ints(1 + size * (size - 1) / 2, i -> -1);
        world.allgatherv(ints(rank, i -> rank), packed, counts, displs);
        assertEquals(-1, packed.get(0));
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < r; i++) {
                assertEquals(r, packed.get((int) displs[r] + i));
            }
        }
        all = rank == 1 ? ints(size, i -> 0) : null;
        world.gather(ints(1, i -> rank), all, 1);
        IntBuffer some = rank == 0 ? packed : null;
        world.gatherv(ints(rank, i -> 7 * rank), some, counts, displs, 0);
        if (rank == 1) {
            expect(ints(size, i -> i), all);
        }
        if (rank == 0) {
            assertEquals(7, packed.get(1));
        }
    }

    @Test
    void everybodyToEverybody() {
        IntBuffer out = ints(size, i -> 0);
        world.alltoall(ints(size, i -> 10 * rank + i), out);
        expect(ints(size, i -> 10 * i + rank), out);
        long[] mine = new long[size];
        long[] ones = new long[size];
        java.util.Arrays.fill(ones, rank + 1);
        java.util.Arrays.setAll(mine, r -> r + 1);
        IntBuffer sent = ints(size * (size + 1) / 2, i -> rank);
        IntBuffer found = ints(size * (rank + 1), i -> -1);
        world.alltoallv(sent, mine, null, found, ones, null);
        expect(ints(size * (rank + 1), i -> i / (rank + 1)), found);
    }

    @Test
    void broadcastsAndMessages() {
        IntBuffer x = ints(3, i -> rank == 2 ? i : -1);
        world.broadcast(x, 2);
        expect(ints(3, i -> i), x);
        int next = (rank + 1) % size;
        Request sent = world.start().send(ints(2, i -> rank), next, 5);
        Result result = world.recv(x, Collectives.ANY_RANK, 5);
        sent.await();
        assertEquals(8, result.bytes());
        assertEquals((rank + size - 1) % size, result.peer());
        assertEquals(result.peer(), x.get(0));
        world.barrier();
    }

    @Test
    void startedAndPrepared() {
        IntBuffer x = ints(1000, i -> rank + i);
        IntBuffer y = ints(1000, i -> rank);
        Request first = world.start().allreduce(x);
        Request second = world.start().broadcast(y, 0);
        second.future().join();
        first.await();
        expect(ints(1000, i -> sum(r -> r + i)), x);
        expect(ints(1000, i -> 0), y);
        IntBuffer z = ints(4, i -> 1);
        try (Persistent sum = world.prepare().allreduce(z)) {
            for (int i = 0, n = size; i < 5; i++, n *= size) {
                sum.start();
                sum.await();
                assertEquals(n, z.get(0));
            }
        }
    }

    @Test
    void groups() {
        try (Communicator half = world.split(rank % 2, -rank).orElseThrow()) {
            IntBuffer x = ints(1, i -> rank);
            half.allreduce(x);
            assertEquals(sum(r -> r % 2 == rank % 2 ? r : 0), x.get(0));
        }
        assertTrue(world.split(rank == 0 ? -1 : 0, 0).isPresent() == (rank != 0));
        assertEquals(rank < 2, world.subset(1, 0).map(pair -> {
            assertEquals(1 - rank, pair.rank());
            pair.barrier();
            return 2 == pair.size();
        }).orElse(false));
        int[] ends = {world.size() - 1, 0};
        if (rank == ends[0] || rank == 0) {
            try (Communicator group = world.createGroup(ends, 3, Duration.ofMinutes(1))) {
                assertEquals(rank == 0 ? 1 : 0, group.rank());
                group.barrier();
            }
            TimedOutException late = assertThrows(TimedOutException.class,
                    () -> world.createGroup(ends, 4 + rank, Duration.ofSeconds(1)));
            assertTrue(late.getMessage().contains("still waiting for"), late.getMessage());
        }
        try (Communicator same = world.duplicate()) {
            same.barrier();
            MismatchException error = assertThrows(MismatchException.class,
                    () -> same.allreduce(ints(1 + rank, i -> 0)));
            assertTrue(error.getMessage().contains("rank"), error.getMessage());
            assertTrue(same.error().isPresent());
        }
        world.barrier();
    }
}
