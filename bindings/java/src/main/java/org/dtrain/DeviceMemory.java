// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.ref.WeakReference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** Buffers that stand for the memory of GPUs: only the library's operations can use them. */
final class DeviceMemory {
    private static final String PLUGIN = "{\"plugin\": \"cuda\", \"used\": ";
    private static final String WHY = "\"why\": \"";
    /** All that live, since views of a buffer keep it alive. */
    private static final List<WeakReference<ByteBuffer>> MADE = new ArrayList<>();

    private DeviceMemory() {
    }

    /** A buffer of the class for this type of elements. */
    static Buffer at(long address, long count, DType dtype) {
        if (address == 0) {
            throw new IllegalArgumentException("address is 0; that of memory of a GPU is required");
        }
        checkCount(count, dtype);
        if (address % dtype.bytes() != 0) {
            throw new IllegalArgumentException("address 0x" + Long.toHexString(address) + " is not a multiple of "
                    + dtype.bytes() + ", the size of an element of " + dtype);
        }
        ByteBuffer memory = NativeJNI.memory(address, count * dtype.bytes());
        synchronized (MADE) {
            MADE.removeIf(one -> one.get() == null);
            MADE.add(new WeakReference<>(memory));
        }
        memory.order(ByteOrder.nativeOrder());
        return switch (dtype) {
            case F32 -> memory.asFloatBuffer();
            case F64 -> memory.asDoubleBuffer();
            case F16, BF16, I16, U16 -> memory.asShortBuffer();
            case I32, U32 -> memory.asIntBuffer();
            case I64, U64 -> memory.asLongBuffer();
            case I8, U8 -> memory;
        };
    }

    static void checkCount(long count, DType dtype) {
        if (count < 0 || count > Integer.MAX_VALUE / dtype.bytes()) {
            throw new IllegalArgumentException("count of " + count + "; it must be between 0 and "
                    + Integer.MAX_VALUE / dtype.bytes() + ", since a buffer of Java has less than 2 GiB");
        }
    }

    /** For what is read on the host. */
    static Span onHost(Span span, String name) {
        synchronized (MADE) {
            for (WeakReference<ByteBuffer> one : MADE) {
                ByteBuffer memory = one.get();
                if (memory != null && Long.compareUnsigned(span.address() - NativeJNI.address(memory),
                        memory.capacity()) < 0) {
                    throw new IllegalArgumentException(name + " is the memory of a GPU, and is read on the "
                            + "host here; pass a copy on the host");
                }
            }
        }
        return span;
    }

    /** Throws the reason if a context that describes itself so cannot use the memory of GPUs. */
    static void check(String described) {
        int at = described.indexOf(PLUGIN);
        if (at >= 0 && described.startsWith("true", at + PLUGIN.length())) {
            return;
        }
        int why = at < 0 ? -1 : described.indexOf(WHY, at);
        String reason = why < 0 ? "the library has no plugin for them"
                : described.substring(why + WHY.length()).replaceFirst("(?s)(?<!\\\\)\".*", "").replace("\\\"", "\"");
        throw new UnsupportedException(Status.UNSUPPORTED,
                "this context cannot use the memory of GPUs: " + reason, -1);
    }
}
