// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Errors of the library as exceptions; options. */
@Tag("unit")
class ErrorsTest {
    @Test
    void optionsThatAreWrong() {
        DtrainException error = assertThrows(NotFoundException.class,
                () -> Context.create(new Options().set("op.timeot", "1s")));
        assertTrue(error.getMessage().contains("op.timeout"), error.getMessage());
        assertEquals(Status.NOT_FOUND, error.status());
        assertEquals(OptionalInt.empty(), error.rank());
        assertThrows(InvalidException.class, () -> Context.create(new Options().set("op.timeout", "x")));
        assertThrows(IllegalArgumentException.class,
                () -> Context.create(new Options().set("op.timeout", "1s\0")));
    }

    @Test
    void weightsOfServers() {
        assertEquals(4, Server.weights(4, 2, 2).length);
        assertThrows(InvalidException.class, () -> Server.weights(1, 1, 2));
    }

    @Test
    void joiningIsDescribed() {
        assertEquals(Join.Role.WORKER, Join.role());
        String text = Join.at("tcp://h:7").size(3).rank(1).describe();
        assertTrue(text.contains("\"index\": 1, \"workers\": 3") && text.contains("torchrun"), text);
    }

    @Test
    void optionsThatAreRight() throws IOException {
        List<Options.Description> all = Options.describe();
        assertTrue(all.stream().anyMatch(option -> option.key().equals("op.timeout")
                && !option.defaultValue().isEmpty() && !option.text().isEmpty()));
        Path file = Files.createTempFile("dtrain", ".options");
        try {
            Files.writeString(file, "# ours\nop.timeout = 7s\n");
            assertEquals("7s", new Options().load(file).get("op.timeout"));
            assertEquals("8s", new Options().load(file).set("op.timeout", "8s").get("op.timeout"));
        } finally {
            Files.delete(file);
        }
    }

    @Test
    void ofOperations() {
        try (Context context = Context.create(); Communicator world = context.world()) {
            assertThrows(InvalidException.class, () -> world.broadcast(Buffers.floats(1), 5));
            assertThrows(UnsupportedException.class, () -> world.using(new Parameters().prescale(2))
                    .allreduce(Buffers.ints(1)));
            Request sent = world.start().send(Buffers.floats(1, 2, 3), 0, 1);
            assertThrows(TruncatedException.class, () -> world.recv(Buffers.floats(1), 0, 1));
            sent.await();
            assertFalse(world.error().isPresent());
            world.abort("an abort \u263A");
            DtrainException error = assertThrows(AbortedException.class, world::barrier);
            assertTrue(error.getMessage().contains("an abort \u263A"), error.getMessage());
            assertEquals(Status.ABORTED, world.error().orElseThrow().status());
            assertEquals(List.of(), world.failed());
        }
    }

    private static ProcessBuilder java(String... arguments) {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-cp",
                System.getProperty("java.class.path")));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command);
    }

    @Test
    void librariesThatAreNotThere(@TempDir Path empty) throws IOException, InterruptedException {
        Process process = java("-Ddtrain.library.path=" + empty, ExitInFlight.class.getName())
                .redirectErrorStream(true).start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(text.contains("no libdtrain_java.so in " + empty), text);
        assertEquals(1, process.waitFor());
    }

    @Test
    void aPeerThatIsGone(@TempDir Path folder) throws IOException, InterruptedException {
        String place = "file://" + folder.resolve("job");
        Process peer = java(LostPeer.class.getName(), place).inheritIO().start();
        try (Context context = Context.create(); Communicator both = context.join(
                Join.at(place).size(2).rank(0).timeout(Duration.ofSeconds(60)))) {
            Request request = both.start().recv(Buffers.ints(0), 1, 0);
            both.barrier();
            DtrainException error = assertThrows(PeerException.class, both::barrier);
            assertEquals(OptionalInt.of(1), error.rank());
            assertThrows(PeerException.class, request::await);
            assertEquals(List.of(1), both.failed());
            try (Communicator rest = both.shrink()) {
                assertEquals(1, rest.size());
                rest.barrier();
            }
        }
        assertEquals(0, peer.waitFor());
    }

    @Test
    void numbersThatAreNotKnown() {
        DtrainException error = Failures.of(-77, "new", 3);
        assertEquals(Status.UNKNOWN, error.status());
        assertEquals("status -77: new", error.getMessage());
        assertEquals(OptionalInt.of(3), error.rank());
    }
}
