// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Memory of the library's, registered buffers, statistics, a server. */
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
                context.world().allreduce(x);
                Request request = context.world().start().recv(x, 0, 0);
                request.cancel();
                assertThrows(CanceledException.class, request::await);
            }
            assertThrows(IllegalArgumentException.class,
                    () -> context.register(x.asReadOnlyBuffer(), false));
            assertThrows(NotFoundException.class, () -> context.deviceStats(99));
        }
    }

    @Test
    void serverOfOnesOwn() throws Exception {
        Path place = Files.createTempDirectory("dtrain");
        Join join = Join.at("file://" + place.resolve("job")).size(1).rank(0).servers(1).index(0);
        try (Context mine = Context.create(); Context other = Context.create()) {
            Thread worker = new Thread(() -> {
                Communicator comm = mine.join(join);
                FloatBuffer x = Buffers.floats(2);
                Table table = comm.table("t", new TableSettings().length(1));
                table.push(x);
                table.pull(x);
                table.close();
                comm.close();
            });
            worker.start();
            try (Server server = other.serve(join)) {
                while (!server.await(Duration.ofMillis(5))) {
                    assertFalse(server.stats().isEmpty());
                }
                worker.join();
            }
        } finally {
            try (var files = Files.list(place)) {
                files.forEach(file -> file.toFile().delete());
            }
            Files.delete(place);
        }
    }
}
