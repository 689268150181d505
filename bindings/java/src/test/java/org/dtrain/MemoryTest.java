// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Memory of the library, registered buffers, statistics, a server. */
@Tag("unit")
class MemoryTest {
    @Test
    void allocated() {
        FloatBuffer x;
        try (Context context = Context.create()) {
            x = context.allocate(4 * 1000).asFloatBuffer();
            assertEquals(1000, x.remaining());
            x.put(999, 3);
            context.world().using(new Parameters().prescale(2)).allreduce(x);
            assertEquals(6, x.get(999));
            assertEquals(0, context.allocate(0).remaining());
            assertTrue(context.describe().startsWith("{"));
        }
        x.put(0, 1); // still there
        assertEquals(6, x.get(999));
    }

    @Test
    void registered() {
        try (Context context = Context.create()) {
            ByteBuffer x = Buffers.bytes(1 << 16);
            try (Registration registration = context.register(x, false)) {
                context.world().allreduce(x.asFloatBuffer());
                Request request = context.world().start().recv(x.asFloatBuffer(), 0, 0);
                request.cancel();
                assertThrows(CanceledException.class, request::await);
            }
            assertThrows(IllegalArgumentException.class,
                    () -> context.register(x.asReadOnlyBuffer(), false));
            assertThrows(NotFoundException.class, () -> context.deviceStats(99));
        }
    }

    @Test
    void serverAtAPlace(@TempDir Path folder) throws Exception {
        Join join = Join.at("file://" + folder.resolve("job")).size(1).rank(0).servers(1).index(0);
        serve(join, join);
    }

    @Test
    void serverByExchange() throws Exception {
        byte[][] blobs = new byte[2][];
        CyclicBarrier all = new CyclicBarrier(2);
        Join[] joins = new Join[2];
        for (int i = 0; i < 2; i++) {
            int place = i; // the worker's, the server's
            joins[i] = Join.by(mine -> {
                blobs[place] = mine;
                all.await(20, TimeUnit.SECONDS);
                List<byte[]> found = List.of(blobs[0], blobs[1]);
                all.await(20, TimeUnit.SECONDS);
                return found;
            }).size(1).rank(0).servers(1).index(0);
        }
        serve(joins[0], joins[1]);
    }

    private static void serve(Join worker, Join server) throws InterruptedException {
        try (Context mine = Context.create(); Context other = Context.create()) {
            FloatBuffer x = Buffers.floats(2);
            Thread thread = new Thread(() -> {
                Communicator comm = mine.join(worker);
                Table table = comm.table("t", new TableSettings().length(1));
                table.push(x);
                table.push(x);
                table.pull(x);
                table.close();
                comm.close();
            });
            thread.start();
            try (Server made = other.serve(server)) {
                while (!made.await(Duration.ofMillis(5))) {
                    assertFalse(made.stats().isEmpty());
                }
                thread.join();
            }
            assertEquals(4, x.get(0));
        }
    }
}
