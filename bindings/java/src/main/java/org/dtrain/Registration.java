// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;

/** A buffer's memory, registered with the transports until this is closed. */
public final class Registration implements AutoCloseable {
    private static final long SHARED = 1;
    private final Handle handle;

    private Registration(Handle handle) {
        this.handle = handle;
    }

    static Registration of(Handle context, Buffer buffer, boolean shared) {
        Span span = DeviceMemory.onHost(Span.writableMemory(buffer), "the buffer");
        Room room = new Room(MemParams.bytes());
        MemParams params = new MemParams(room);
        params.prepare();
        params.setMem_type(1); // DTRAIN_MEM_HOST
        params.setAddress(span.address());
        params.setLength(span.bytes());
        params.setFlags(shared ? SHARED : 0);
        Handle handle = context.make("registration", of -> Native.dtrain_mem_register(of, room.address()),
                Native::dtrain_mem_deregister);
        room.keep();
        handle.keep(buffer);
        return new Registration(handle);
    }

    /**
     * Ends the registration; the buffer is then like any other.
     *
     * @throws BusyException an operation uses it
     */
    @Override
    public void close() {
        handle.close();
    }
}
