// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;

/** Memory of a GPU from {@link Context#allocateOnDevice}, with undefined contents, until this is closed. */
public final class DeviceAllocation implements AutoCloseable {
    private static final int CUDA = 2; // DTRAIN_MEM_CUDA
    private static final long SHARED = 1;
    private final Handle handle;
    private final Buffer buffer;
    private final long address;

    private DeviceAllocation(Handle handle, long address, Buffer buffer) {
        this.handle = handle;
        this.address = address;
        this.buffer = buffer;
    }

    static DeviceAllocation of(Context context, Handle handle, long count, DType dtype, int device, boolean shared) {
        DeviceMemory.checkCount(count, dtype);
        Room room = new Room(MemParams.bytes());
        MemParams params = new MemParams(room);
        params.prepare();
        params.setMem_type(CUDA);
        params.setLength(count * dtype.bytes());
        params.setDevice(device);
        params.setFlags(shared ? SHARED : 0);
        Handle made = handle.make("memory of a GPU", of -> Native.dtrain_mem_create(of, room.address()),
                Native::dtrain_mem_deregister);
        room.keep();
        long address = made.call(Native::dtrain_mem_address);
        return new DeviceAllocation(made, address, context.deviceBuffer(address, count, dtype));
    }

    /**
     * The memory as {@link Context#deviceBuffer} gives it.
     *
     * @return a buffer for operations, not to be read or written in Java
     */
    public Buffer buffer() {
        return buffer;
    }

    /**
     * Where it lies on the GPU.
     *
     * @return a CUdeviceptr
     */
    public long address() {
        return address;
    }

    /**
     * Frees the memory; nothing may use its buffer any more.
     *
     * @throws BusyException an operation uses it
     */
    @Override
    public void close() {
        handle.close();
    }
}
