// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tables on dedicated servers, by two workers. */
@Tag("tables")
class TablesTest {
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

    private static void expect(FloatBuffer found, float... expected) {
        assertArrayEquals(expected, Buffers.array(found), 1e-6f);
    }

    @Test
    void dense() {
        try (Table table = world.table("dense", new TableSettings().length(4).initial(1))) {
            FloatBuffer x = Buffers.floats(0, 0, 0, 0);
            table.push(Buffers.floats(1, 2), 1);
            world.barrier();
            Result pulled = table.pull(x);
            expect(x, 1, 1 + size, 1 + 2 * size, 1);
            assertEquals(16, pulled.bytes());
            world.barrier();
            table.start().push(Buffers.floats(1, 1, 1, 1)).await();
            world.barrier();
            Request again = table.start().pull(x);
            assertTrue(again.await().version() >= size);
            expect(x, 1 + size, 1 + 2 * size, 1 + 3 * size, 1 + size);
            world.barrier();
            if (rank == 0) {
                table.set(Buffers.floats(7), 3);
                table.setReady();
            }
            table.waitReady();
            world.barrier();
            table.pull(x.duplicate().position(3), 3);
            assertEquals(7, x.get(3));
            world.barrier();
            if (rank == 0) {
                table.set(Buffers.floats(1, 2, 3, 4));
                FloatBuffer both = Buffers.floats(1, 1, 1, 1); // in place: first the pushed, then the pulled values
                table.pushPull(both);
                expect(both, 2, 3, 4, 5);
                FloatBuffer last = Buffers.floats(1);
                table.pushPull(last, 3);
                expect(last, 6);
            }
            assertTrue(table.stats(-1).requests() > 0);
            assertEquals(4, table.servers().stream().mapToLong(Table.Share::elements).sum());
            assertEquals(table.locate(0, 3).length, 2);
            world.barrier();
        }
    }

    @Test
    void refused() {
        try (Table table = world.table("refused", new TableSettings().length(4).dtype(DType.F16))) {
            ShortBuffer halves = Buffers.bytes(8).asShortBuffer();
            table.push(halves);
            assertThrows(IllegalArgumentException.class, () -> table.push(Buffers.floats(1)));
            assertThrows(IllegalArgumentException.class, () -> table.pull(halves.asReadOnlyBuffer()));
            assertThrows(InvalidException.class, () -> table.push(halves, 1));
            assertThrows(InvalidException.class, () -> table.push(halves, -1));
            assertThrows(IllegalArgumentException.class,
                    () -> table.pushPull(halves, Buffers.bytes(6).asShortBuffer(), 0));
            assertThrows(DtrainException.class, () -> table.pushRows(Buffers.longs(), halves.duplicate()
                    .limit(0)));
        }
        assertThrows(DtrainException.class, () -> world.table("wrong", new TableSettings()));
        RuntimeException thrown = new RuntimeException("no place");
        DtrainException error = assertThrows(DtrainException.class, () -> world.table("placed",
                new TableSettings().length(8).place((first, count, servers) -> {
                    throw thrown;
                })));
        assertSame(thrown, error.getCause());
        world.table("placed", new TableSettings().length(8).place((first, count, servers) -> 0)).close();
    }

    @Test
    void zerosAreTaken() {
        TableSettings[] all = {new TableSettings().rule(Rule.SGD).learningRate(0),
            new TableSettings().rule(Rule.MOMENTUM).learningRate(1).momentum(0),
            new TableSettings().rowLength(2).segments(
                    new Segment(0, 2).rule(Rule.MOMENTUM).learningRate(1).momentum(0))};
        for (int i = 0; i < all.length; i++) {
            try (Table table = world.table("zeros" + i, all[i].length(2))) {
                table.push(Buffers.floats(1, 1));
                table.push(Buffers.floats(1, 1));
                world.barrier();
                FloatBuffer x = Buffers.floats(5, 5);
                table.pull(x);
                expect(x, i == 0 ? 0 : -2 * size, i == 0 ? 0 : -2 * size);
                world.barrier();
            }
        }
        assertThrows(InvalidException.class,
                () -> world.table("idle", new TableSettings().length(2).rule(Rule.SGD).momentum(0)));
        assertThrows(IllegalArgumentException.class, () -> new Parameters().weight(0));
        assertThrows(IllegalArgumentException.class, () -> new TableSettings().maxBytes(0));
        FloatBuffer none = Buffers.floats(1, 1);
        world.using(new Parameters().prescale(0)).allreduce(none, Op.SUM);
        expect(none, 0, 0);
    }

    private static TableSettings decaying() {
        return new TableSettings().length(2).rule(Rule.ADAM).steps(Steps.TABLE).schedule(Schedule.COSINE)
                .warmupSteps(3).decaySteps(9).decay(0.25);
    }

    private static TableSettings averaged() {
        return new TableSettings().dim(2).consistency(Consistency.BSP).aggregate(Op.AVG)
                .meanOver(MeanOver.PUSHERS);
    }

    private static TableSettings begun(double accumulator) {
        return new TableSettings().length(2).rule(Rule.ADAGRAD).accumulator(accumulator);
    }

    private static TableSettings part(double accumulator) {
        return new TableSettings().dim(2).segments(
                new Segment(0, 2).rule(Rule.FTRL).accumulator(accumulator));
    }

    /**
     * The first settings make a table; if another rank uses the second, the error names the
     * difference.
     */
    private record Differing(TableSettings settings, TableSettings other, String name) {
    }

    @Test
    void numbersArrive() {
        for (Differing two : List.of(
                new Differing(decaying(), decaying().steps(Steps.OWN), "steps"),
                new Differing(decaying(), decaying().schedule(Schedule.LINEAR), "schedule"),
                new Differing(decaying(), decaying().warmupSteps(4), "warmup_steps"),
                new Differing(decaying(), decaying().decaySteps(10), "decay_steps"),
                new Differing(decaying(), decaying().decay(0), "decay"),
                new Differing(averaged(), averaged().meanOver(MeanOver.WORKERS), "mean_over"),
                new Differing(begun(0.5), begun(0.5).memory(TableMemory.CUDA), "memory"),
                new Differing(begun(0.5), begun(0), "accumulator"),
                new Differing(part(0.5), part(0), "segment 0 accumulator"))) {
            world.table("numbers " + two.name(), two.settings()).close();
            says(MismatchException.class, two.name(), rank == 0 ? two.settings() : two.other());
        }
        TableSettings sgd = new TableSettings().length(2).rule(Rule.SGD);
        says(InvalidException.class, "steps is not valid",
                new TableSettings().length(2).rule(Rule.SGD).steps(Steps.TABLE));
        says(InvalidException.class, "accumulator is given",
                new TableSettings().length(2).rule(Rule.SGD).accumulator(0));
        says(InvalidException.class, "mean_over is not valid",
                new TableSettings().length(2).meanOver(MeanOver.PUSHERS));
        says(InvalidException.class, "decay_steps is not valid", sgd.schedule(Schedule.COSINE));
        world.table("numbers", sgd.decaySteps(9)).close();
        assertEquals(Schedule.INVERSE_SQRT, Schedule.of("inverse-sqrt"));
        assertEquals(Steps.TABLE, Steps.of("table"));
        assertEquals(MeanOver.PUSHERS, MeanOver.of("pushers"));
        assertEquals(TableMemory.CUDA, TableMemory.of("cuda"));
    }

    private static void says(Class<? extends DtrainException> kind, String part, TableSettings settings) {
        String text = assertThrows(kind, () -> world.table("numbers", settings)).getMessage();
        assertTrue(text.contains(part), text);
    }

    @Test
    void whatIsNotFinite() {
        try (Table table = world.table("finite", new TableSettings().length(2).notFinite(NotFinite.DROP))) {
            table.push(Buffers.floats(Float.NaN, 1));
            assertEquals(1, table.stats(-1).notFinite());
            world.barrier();
            FloatBuffer x = Buffers.floats(5, 5);
            table.pull(x);
            expect(x, 0, 0);
            world.barrier();
        }
    }

    @Test
    void clocks() {
        try (Table table = world.table("clocks", new TableSettings().length(2)
                .consistency(Consistency.BSP).rule(Rule.MOMENTUM).learningRate(1).momentum(0.5)
                .aggregate(Op.AVG))) {
            FloatBuffer x = Buffers.floats(1, 1);
            table.push(x);
            table.clock();
            table.pull(x);
            expect(x, -1, -1);
            Table.State state = table.states().get(0);
            assertEquals("momentum", state.name());
            FloatBuffer momentum = Buffers.floats(0, 0);
            table.pullState(state, momentum, 0);
            expect(momentum, 1, 1);
            assertThrows(IllegalArgumentException.class,
                    () -> table.pullState(state, Buffers.longs(0), 0));
            world.barrier();
            table.setRate(0.5);
            table.setUpdates(7);
            FloatBuffer g = Buffers.floats(1, 1);
            table.using(new Parameters().weight(2)).pushPull(g, x, 0);
            expect(x, -1.75f, -1.75f);
            table.setConsistency(new TableSettings().consistency(Consistency.ASYNC));
            world.barrier();
        }
    }

    @Test
    void rows() {
        try (Table table = world.table("rows", new TableSettings().dim(2).segments(
                new Segment(0, 1).rule(Rule.SGD).learningRate(1), new Segment(1, 1).rule(Rule.ADD)))) {
            LongBuffer keys = Buffers.longs(-1, 5);
            FloatBuffer x = Buffers.floats(1, 2, 3, 4);
            if (rank == 0) {
                table.pushRows(keys, x);
            }
            world.barrier();
            table.pullRows(keys, x);
            expect(x, -1, 2, -3, 4);
            assertEquals(2, table.countRows().count());
            assertEquals(2, table.start().countRows().await().count());
            world.barrier();
            assertThrows(IllegalArgumentException.class, () -> table.pullRows(keys, Buffers.floats(1, 2)));
            assertThrows(IllegalArgumentException.class, () -> table.pullRows(Buffers.longs(), x));
            if (rank == 0) {
                table.setRows(keys, Buffers.floats(9, 9, 9, 9));
                table.eraseRows(keys.duplicate().limit(1));
            }
            world.barrier();
            table.pullRows(keys, x);
            expect(x, 0, 0, 9, 9);
            world.barrier();
        }
    }

    @Test
    void checkpoints() {
        try (Table table = world.table("saved", new TableSettings().length(2))) {
            Checkpoint checkpoint = new Checkpoint(table);
            if (rank == 0) {
                assertEquals(OptionalLong.empty(), table.restored());
                table.push(Buffers.floats(1, 2));
                assertTrue(checkpoint.save(System.nanoTime()));
                long step = table.newestCheckpoint().orElseThrow();
                assertEquals(step, checkpoint.await());
                assertThrows(TimedOutException.class,
                        () -> new Checkpoint(table).timeout(Duration.ofMillis(50)).await(step));
                table.push(Buffers.floats(1, 2));
                assertEquals(step, checkpoint.restore());
                FloatBuffer x = Buffers.floats(0, 0);
                table.pull(x);
                expect(x, 1, 2);
                assertThrows(NotFoundException.class, () -> checkpoint.restore(77));
            }
            world.barrier();
            assertEquals(List.of(), world.failed());
        }
    }
}
