// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Operations in flight. */
@Tag("unit")
class RequestsTest {
    private Context context;
    private Communicator world;

    @BeforeEach
    void open() {
        context = Context.create();
        world = context.world();
    }

    @AfterEach
    void close() {
        context.close();
    }

    @Test
    void awaited() {
        FloatBuffer x = Buffers.floats(3);
        Request request = world.using(new Parameters().postscale(2)).start().allreduce(x);
        assertEquals(-1, request.await().peer());
        assertEquals(6, x.get(0));
        assertTrue(request.isDone());
        assertEquals(request.await(Duration.ZERO), request.result());
    }

    @Test
    void futures() throws Exception {
        FloatBuffer x = Buffers.floats(0);
        Request request = world.start().recv(x, 0, 7);
        CompletableFuture<Float> seen = request.future().thenApply(result -> x.get(0) + result.bytes());
        assertFalse(request.isDone());
        assertThrows(StateException.class, request::result);
        assertThrows(TimedOutException.class, () -> request.await(Duration.ofMillis(30)));
        world.send(Buffers.floats(5), 0, 7);
        assertEquals(9f, seen.get(20, TimeUnit.SECONDS));
    }

    @Test
    void many() {
        List<Request> requests = new ArrayList<>();
        for (int i = 0; i < 3000; i++) {
            requests.add(world.start().allreduce(Buffers.floats(i)));
        }
        CompletableFuture.allOf(requests.stream().map(Request::future).toArray(CompletableFuture[]::new))
                .orTimeout(60, TimeUnit.SECONDS).join();
        requests.forEach(request -> assertTrue(request.isDone()));
    }

    @Test
    void forgotten() {
        world.start().recv(Buffers.bytes(1 << 20).asIntBuffer(), 0, 9);
        System.gc();
        System.gc();
        world.send(Buffers.bytes(1 << 20).asIntBuffer(), 0, 9);
    }

    @Test
    void failures() throws Exception {
        Request request = world.start().recv(Buffers.ints(0), 0, 0);
        request.cancel();
        assertThrows(CanceledException.class, request::await);
        ExecutionException error = assertThrows(ExecutionException.class,
                () -> request.future().get(20, TimeUnit.SECONDS));
        assertInstanceOf(CanceledException.class, error.getCause());
        Request late = world.using(new Parameters().timeout(Duration.ofMillis(20))).start()
                .recv(Buffers.ints(0), 0, 0);
        assertThrows(TimedOutException.class, late::await);
        assertThrows(IllegalArgumentException.class, () -> new Parameters().timeout(Duration.ZERO));
    }

    @Test
    void closeEndsThem() {
        Request request = world.start().recv(Buffers.bytes(4).asIntBuffer(), 0, 0);
        context.close();
        assertThrows(CanceledException.class, request::await);
        assertTrue(request.future().isCompletedExceptionally());
        request.cancel();
    }

    @Test
    void whatDependsMayNotCloseTheContext() throws Exception {
        Request request = world.start().recv(Buffers.ints(0), 0, 0);
        CompletableFuture<Void> closed = request.future().thenRun(context::close);
        world.send(Buffers.ints(0), 0, 0);
        ExecutionException error = assertThrows(ExecutionException.class,
                () -> closed.get(20, TimeUnit.SECONDS));
        assertInstanceOf(BusyException.class, error.getCause());
    }

    @Test
    void prepared() {
        FloatBuffer x = Buffers.floats(1);
        try (Persistent doubled = world.using(new Parameters().prescale(2)).prepare().allreduce(x)) {
            assertTrue(doubled.isDone());
            for (int i = 1; i <= 10; i++) {
                doubled.start();
                doubled.await();
                assertEquals(1 << i, x.get(0));
            }
        }
        Persistent running = world.prepare().recv(Buffers.bytes(8).asIntBuffer(), 0, 1);
        running.start();
        assertThrows(BusyException.class, running::start);
        assertThrows(TimedOutException.class, () -> running.await(Duration.ofMillis(1)));
        running.close();
        assertThrows(StateException.class, running::start);
    }
}
