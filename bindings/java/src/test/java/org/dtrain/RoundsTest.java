// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Rounds whose ranks are threads that exchange texts, as an engine's tasks do. */
@Tag("unit")
class RoundsTest {
    private static final int RANKS = 3;
    private final String[] texts = new String[RANKS];
    private final CyclicBarrier barrier = new CyclicBarrier(RANKS);

    private interface Part<T> {
        T run(Rounds rounds);
    }

    private <T> List<T> onEachRank(Part<T> part) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(RANKS);
        try {
            List<Callable<T>> calls = new ArrayList<>();
            for (int rank = 0; rank < RANKS; rank++) {
                int own = rank;
                calls.add(() -> {
                    try (Rounds rounds = Rounds.join(own, RANKS, mine -> {
                        texts[own] = mine;
                        barrier.await(60, TimeUnit.SECONDS);
                        return texts.clone();
                    })) {
                        return part.run(rounds);
                    }
                });
            }
            List<T> results = new ArrayList<>();
            for (Future<T> future : threads.invokeAll(calls)) {
                results.add(future.get(60, TimeUnit.SECONDS));
            }
            return results;
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void broadcastComputeReduce() throws Exception {
        List<double[]> models = onEachRank(rounds -> rounds.run(new double[] {1 + rounds.rank(), 10}, 4, Op.SUM,
                (round, model) -> new double[] {rounds.rank() + round, model[0]},
                (model, sum) -> {
                    model[0] += sum[0];
                    model[1] = sum[1];
                }));
        // The sums of ranks and rounds are 3, 6, 9 and 12; the last one of model[0] is 3 * (1 + 3 + 6 + 9).
        for (double[] model : models) {
            assertArrayEquals(new double[] {31, 57}, model);
        }
    }

    @Test
    void arraysOfBothKindsAndSizes() throws Exception {
        for (float[] values : onEachRank(rounds -> {
            assertEquals(RANKS, rounds.size());
            assertEquals(RANKS, rounds.world().size());
            double[] wide = rounds.reduce(new double[] {rounds.rank(), 1, 2}, Op.MAX);
            assertArrayEquals(new double[] {2, 1, 2}, wide);
            rounds.reduce(new double[0], Op.SUM);
            float[] first = rounds.broadcast(new float[] {rounds.rank() + 5});
            return rounds.reduce(new float[] {first[0], rounds.rank()}, Op.AVG);
        })) {
            assertArrayEquals(new float[] {5, 1}, values);
        }
    }

    @Test
    void anExchangeThatFails() {
        DtrainException error = assertThrows(DtrainException.class, () -> Rounds.join(0, 2, mine -> {
            throw new IllegalStateException("planted");
        }));
        assertTrue(error.getCause() instanceof IllegalStateException, String.valueOf(error));
        assertThrows(DtrainException.class, () -> Rounds.join(0, 2, mine -> new String[] {mine}));
    }
}
