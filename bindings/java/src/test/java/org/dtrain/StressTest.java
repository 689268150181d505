// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Threads run random operations while others close the objects that they use and Java collects
 * garbage.
 */
@Tag("unit")
class StressTest {
    private static final int THREADS = 4;
    private static final int STEPS = 400;

    /** One operation; its result is checked. */
    private static void step(Random random, Communicator world, List<Request> requests) {
        FloatBuffer x = Buffers.floats(random.nextFloat(), 1);
        float first = x.get(0);
        switch (random.nextInt(6)) {
            case 0 -> world.allreduce(x);
            case 1 -> requests.add(world.start().allreduce(x));
            case 2 -> requests.add(world.start().recv(x, 0, 1 << 20)); // from no sender
            case 3 -> {
                try (Persistent prepared = world.prepare().broadcast(x, 0)) {
                    prepared.start();
                }
            }
            case 4 -> {
                Request request = world.start().send(x, 0, 7);
                FloatBuffer y = Buffers.floats(0, 0);
                world.recv(y, 0, 7);
                request.await();
                first = x.get(0);
                assertEquals(first, y.get(0));
            }
            default -> {
                if (!requests.isEmpty()) {
                    requests.remove(random.nextInt(requests.size())).isDone();
                }
            }
        }
        if (requests.size() > 100) {
            requests.clear(); // dropped requests continue
        }
        assertEquals(first, x.get(0));
    }

    @Test
    void closedUnderway() throws InterruptedException {
        long seed = Long.parseLong(System.getenv().getOrDefault("DTRAIN_TEST_SEED",
                Long.toString(System.nanoTime())));
        System.out.println("seed " + seed + " (DTRAIN_TEST_SEED)");
        Queue<Throwable> unexpected = new ConcurrentLinkedQueue<>();
        Context context = Context.create();
        List<Communicator> communicators = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Communicator own = context.world().duplicate();
            Random random = new Random(seed + i);
            communicators.add(own);
            threads.add(new Thread(() -> {
                List<Request> requests = new ArrayList<>();
                try {
                    for (int s = 0; s < STEPS || random.nextInt(50) > 0; s++) {
                        step(random, own, requests);
                    }
                } catch (BusyException closing) {
                    if (!closing.getMessage().contains("is closing")) {
                        unexpected.add(closing);
                    }
                } catch (StateException | CanceledException closed) {
                    // objects that were made with a communicator are closed before it
                    if (!own.isClosed() && !closed.getMessage().contains("operation is closed")) {
                        unexpected.add(closed);
                    }
                } catch (Throwable error) {
                    unexpected.add(error);
                }
            }));
        }
        threads.forEach(Thread::start);
        Random random = new Random(seed - 1);
        while (!context.isClosed()) {
            System.gc();
            try {
                if (random.nextBoolean()) {
                    communicators.get(random.nextInt(THREADS)).close();
                } else if (threads.stream().noneMatch(Thread::isAlive)) {
                    context.close();
                }
            } catch (BusyException busy) {
                Thread.onSpinWait();
            }
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(List.of(), List.copyOf(unexpected));
    }
}
