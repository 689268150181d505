// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.EnumSet;
import java.util.Set;

/** The elements of a direct buffer from its position to its limit. */
record Span(long address, long count, DType dtype) {
    private static final Set<DType> SHORTS = EnumSet.of(DType.I16, DType.U16, DType.F16, DType.BF16);
    private static final Set<DType> INTS = EnumSet.of(DType.I32, DType.U32);
    private static final Set<DType> LONGS = EnumSet.of(DType.I64, DType.U64);

    /**
     * dtype: type of the elements; null: that of the buffer's class, which a ByteBuffer does not
     * have.
     */
    static Span of(Buffer buffer, DType dtype) {
        if (buffer instanceof FloatBuffer floats) {
            return typed(buffer, floats.order(), matching(dtype, DType.F32));
        }
        if (buffer instanceof ByteBuffer bytes) {
            return untyped(bytes, said(dtype));
        }
        if (buffer instanceof DoubleBuffer doubles) {
            return typed(buffer, doubles.order(), matching(dtype, DType.F64));
        }
        if (buffer instanceof IntBuffer ints) {
            return typed(buffer, ints.order(), matching(dtype, DType.I32, INTS));
        }
        if (buffer instanceof LongBuffer longs) {
            return typed(buffer, longs.order(), matching(dtype, DType.I64, LONGS));
        }
        if (buffer instanceof ShortBuffer shorts) {
            return typed(buffer, shorts.order(), matching(dtype, DType.I16, SHORTS));
        }
        throw new IllegalArgumentException(buffer == null ? "this operation needs a buffer here"
                : "a ByteBuffer, FloatBuffer, DoubleBuffer, IntBuffer, LongBuffer or ShortBuffer is "
                        + "needed, not a " + buffer.getClass().getSimpleName());
    }

    /** A buffer for the result. */
    static Span writable(Buffer buffer, DType dtype) {
        refuseReadOnly(buffer);
        return of(buffer, dtype);
    }

    static Span writableMemory(Buffer buffer) {
        refuseReadOnly(buffer);
        return memory(buffer);
    }

    private static void refuseReadOnly(Buffer buffer) {
        if (buffer != null && buffer.isReadOnly()) {
            throw new IllegalArgumentException("the buffer is read-only, and the result would be "
                    + "written to it; pass a writable one");
        }
    }

    /** The memory of a buffer, whatever its elements. */
    static Span memory(Buffer buffer) {
        return of(buffer, buffer instanceof ByteBuffer ? DType.I8 : null);
    }

    long bytes() {
        return count * dtype.bytes();
    }

    private static DType said(DType dtype) {
        if (dtype == null) {
            throw new IllegalArgumentException("a ByteBuffer may hold elements of any type, and no type "
                    + "was given; pass a view, such as asFloatBuffer(), or give the type by using(new "
                    + "Parameters().elements(DType.F32)), for bytes elements(DType.I8) or elements(DType.U8)");
        }
        return dtype;
    }

    private static DType matching(DType wanted, DType natural) {
        if (wanted != null && wanted != natural) {
            throw mismatch(wanted, natural);
        }
        return natural;
    }

    private static DType matching(DType wanted, DType natural, Set<DType> possible) {
        if (wanted != null && !possible.contains(wanted)) {
            throw mismatch(wanted, natural);
        }
        return wanted == null ? natural : wanted;
    }

    private static IllegalArgumentException mismatch(DType wanted, DType natural) {
        return new IllegalArgumentException("elements of " + wanted + " are needed; this buffer holds "
                + natural + " (a ByteBuffer may hold any)");
    }

    private static Span typed(Buffer buffer, ByteOrder order, DType dtype) {
        if (!buffer.isDirect()) {
            throw new IllegalArgumentException("the buffer is on Java's heap, where it may be moved; make "
                    + "it by ByteBuffer.allocateDirect(n).order(ByteOrder.nativeOrder()), or by "
                    + "context.allocate(n)");
        }
        if (order != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException("the buffer's byte order is not this machine's; call "
                    + "order(ByteOrder.nativeOrder()) on the ByteBuffer before its elements are put or "
                    + "viewed");
        }
        return new Span(NativeJNI.address(buffer) + (long) buffer.position() * dtype.bytes(),
                buffer.remaining(), dtype);
    }

    private static Span untyped(ByteBuffer buffer, DType dtype) {
        int bytes = dtype.bytes();
        Span all = typed(buffer, bytes == 1 ? ByteOrder.nativeOrder() : buffer.order(), DType.I8);
        if (all.count % bytes != 0 || all.address % bytes != 0) {
            throw new IllegalArgumentException("the ByteBuffer's " + all.count + " bytes, at address "
                    + Long.toHexString(all.address) + ", are not whole elements of " + dtype + ", of " + bytes
                    + " bytes each at multiples of " + bytes);
        }
        return new Span(all.address, all.count / bytes, dtype);
    }
}
