// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** TFRecord files. */
@Tag("unit")
class RecordsTest {
    @Test
    void writtenAndRead(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("\u00fc.tfrecord");
        try (RecordWriter writer = new RecordWriter(file)) {
            writer.append(new byte[] {1, 2, 3});
            writer.append(new byte[0]);
            writer.append(Buffers.longs(7));
        }
        try (RecordReader reader = new RecordReader(List.of(file))) {
            for (int round = 0; round < 2; round++) {
                assertArrayEquals(new byte[] {1, 2, 3}, reader.next());
                assertArrayEquals(new byte[0], reader.next());
                assertEquals(8, reader.next().length);
                assertNull(reader.next());
                reader.rewind();
            }
        }
        byte[] bytes = Files.readAllBytes(file);
        bytes[14] ^= 1;
        Files.write(file, bytes);
        try (RecordReader reader = new RecordReader(List.of(file), 0, 1, 0)) {
            assertThrows(CorruptException.class, reader::next);
            reader.close();
            assertThrows(StateException.class, reader::next);
        }
        assertThrows(DtrainException.class, () -> new RecordReader(List.of(folder.resolve("none"))));
        RecordWriter lost = new RecordWriter(folder.resolve("gone").resolve("x").getParent());
        lost.append(new byte[1]);
        lost.close();
        lost.close();
        assertThrows(StateException.class, () -> lost.append(new byte[1]));
    }
}
