// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Use after close, other threads, interrupts, callbacks that throw: exceptions, no crash. */
@Tag("unit")
class MisuseTest {
    /** Runs body in a new thread; the future gets its exception, or null. */
    private static CompletableFuture<Throwable> inThread(AtomicReference<Thread> thread, Runnable body) {
        CompletableFuture<Throwable> ended = new CompletableFuture<>();
        CountDownLatch begun = new CountDownLatch(1);
        Thread made = new Thread(() -> {
            begun.countDown();
            try {
                body.run();
                ended.complete(null);
            } catch (Throwable error) {
                ended.complete(error);
            }
        });
        thread.set(made);
        made.start();
        try {
            begun.await();
        } catch (InterruptedException error) {
            throw new AssertionError(error);
        }
        return ended;
    }

    @Test
    void useAfterClose() {
        Context context = Context.create();
        Communicator world = context.world();
        BlockingCollectives view = world.using(new Parameters().priority(1));
        Persistent prepared = world.prepare().barrier();
        Table table = world.table("t", new TableSettings().length(1));
        Gradients queue = world.gradients(new Gradients.Settings());
        Graph graph = world.graph(Graph.Kind.RING);
        Compressor compressor = world.compressor(new Compressor.Settings(Compressor.Kind.F16, 1));
        context.close();
        context.close();
        world.close();
        table.close();
        assertTrue(world.isClosed() && context.isClosed());
        FloatBuffer x = Buffers.floats(1);
        List<Runnable> uses = List.of(() -> world.allreduce(Buffers.floats(1)), view::barrier,
                () -> world.start().barrier(), () -> world.prepare().barrier(), prepared::start,
                prepared::await, world::duplicate, () -> world.split(0, 0), () -> world.abort(null),
                world::failed, context::world, context::describe, context::progress,
                () -> context.setLog(null), () -> context.markTimeline("x"), () -> table.pull(x),
                () -> table.start().push(x), table::states, () -> table.stats(-1), () -> table.locate(0),
                () -> new Checkpoint(table).save(1), () -> queue.submit("x", x), queue::join, queue::stats,
                () -> graph.average(x), graph::selfWeight, graph::inNeighbors, compressor::reset,
                () -> compressor.allreduce(x, Op.SUM), () -> compressor.startAllreduce(x, x, Op.SUM),
                () -> world.table("u", new TableSettings().length(1)), () -> context.allocate(1),
                () -> context.register(x, false), () -> context.join(Join.byEnvironment()));
        for (Runnable use : uses) {
            DtrainException error = assertThrows(StateException.class, use::run);
            assertTrue(error.getMessage().contains("is closed"), error.getMessage());
        }
    }

    @Test
    void closeWhileAnotherThreadWaits() throws Exception {
        try (Context context = Context.create()) {
            Communicator world = context.world();
            AtomicReference<Thread> thread = new AtomicReference<>();
            CompletableFuture<Throwable> ended = inThread(thread,
                    () -> world.recv(Buffers.ints(0), 0, 0));
            DtrainException error = null;
            while (error == null) {
                try {
                    world.start().barrier();
                    if (thread.get().getState() == Thread.State.RUNNABLE) {
                        context.close();
                    }
                } catch (BusyException busy) {
                    error = busy;
                } catch (StateException closed) {
                    return; // before the thread began to wait
                }
            }
            assertTrue(error.getMessage().contains("another thread"), error.getMessage());
            world.abort("enough");
            assertInstanceOf(AbortedException.class, ended.get(20, TimeUnit.SECONDS));
        }
    }

    @Test
    void interrupts() throws Exception {
        try (Context context = Context.create()) {
            Communicator world = context.world();
            Request request = world.start().recv(Buffers.ints(0), 0, 1);
            Persistent prepared = world.prepare().recv(Buffers.ints(0), 0, 2);
            prepared.start();
            List<Runnable> waits = List.of(() -> world.recv(Buffers.ints(0), 0, 0), request::await,
                    prepared::await);
            for (Runnable wait : waits) {
                AtomicReference<Thread> thread = new AtomicReference<>();
                CompletableFuture<Boolean> still = new CompletableFuture<>();
                CompletableFuture<Throwable> ended = inThread(thread, () -> {
                    try {
                        wait.run();
                    } finally {
                        still.complete(Thread.currentThread().isInterrupted());
                    }
                });
                thread.get().interrupt();
                assertInstanceOf(InterruptedWaitException.class, ended.get(2, TimeUnit.SECONDS));
                assertTrue(still.get());
            }
            // Nothing is broken: the interrupted receive takes no later message.
            IntBuffer x = Buffers.ints(0);
            Request sent = world.start().send(Buffers.ints(7), 0, 0);
            world.recv(x, 0, 0);
            sent.await();
            assertEquals(7, x.get(0));
            // Operations that finish at once are not interrupted.
            Thread.currentThread().interrupt();
            world.barrier();
            assertTrue(Thread.interrupted());
        }
    }

    @Test
    void logs() {
        ConcurrentLinkedQueue<String> lines = new ConcurrentLinkedQueue<>();
        try (Context context = Context.create(new Options().set("explain", "yes"))) {
            context.setLog((level, line) -> lines.add(level + " " + line));
            context.world().allreduce(Buffers.floats(1));
            assertTrue(lines.stream().anyMatch(line -> line.startsWith("INFO ")), lines.toString());
        }
    }

    @Test
    void aSinkThatThrows() {
        AtomicReference<Throwable> seen = new AtomicReference<>();
        Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> seen.set(error));
        RuntimeException thrown = new RuntimeException("the sink fails");
        try (Context context = Context.create(new Options().set("explain", "yes"))) {
            context.setLog((level, line) -> {
                throw thrown;
            });
            context.world().allreduce(Buffers.floats(1));
        } finally {
            Thread.setDefaultUncaughtExceptionHandler(before);
        }
        assertSame(thrown, seen.get());
    }

    @Test
    void exchanges() {
        try (Context context = Context.create()) {
            assertEquals(1, context.join(Join.by(List::of).size(1).rank(0)).size());
        }
        IllegalStateException thrown = new IllegalStateException("no exchange");
        AllGather failing = mine -> {
            throw thrown;
        };
        try (Context context = Context.create()) {
            for (AllGather wrong : List.<AllGather>of(failing, mine -> null, mine -> List.of(mine),
                    mine -> List.of(mine, new byte[mine.length + 1]))) {
                DtrainException error = assertThrows(DtrainException.class,
                        () -> context.join(Join.by(wrong).size(2).rank(0)));
                assertTrue(error.getCause() != null, error.getMessage());
                assertTrue(wrong == failing || error.getCause().getMessage().contains("exchange() returned"),
                        error.getCause().toString());
                assertTrue(wrong != failing || error.getCause() == thrown);
            }
        }
    }
}
