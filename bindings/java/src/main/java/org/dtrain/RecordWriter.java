// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/** Writes a TFRecord file, which appears under its name when it is closed. */
public final class RecordWriter implements AutoCloseable {
    private final Handle handle;

    /**
     * Creates or replaces a file.
     *
     * @param file its name
     */
    public RecordWriter(Path file) {
        handle = new Handle(null, "writer",
                Native.dtrain_writer_open(Arguments.given(file, "file").toString()),
                Native::dtrain_writer_close);
    }

    /**
     * Adds a record.
     *
     * @param record its bytes
     */
    public void append(byte[] record) {
        Arguments.given(record, "record");
        append(ByteBuffer.allocateDirect(record.length).put(record).flip());
    }

    /**
     * Adds a record.
     *
     * @param record a direct buffer
     */
    public synchronized void append(Buffer record) {
        Span bytes = DeviceMemory.onHost(Span.memory(record), "record");
        handle.call(writer -> Native.dtrain_writer_append(writer, bytes.address(), bytes.bytes()));
        Reference.reachabilityFence(record);
    }

    /**
     * Ends the file.
     *
     * @throws DtrainException it could not be written
     */
    @Override
    public synchronized void close() {
        handle.close();
    }
}
