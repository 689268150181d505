// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.ref.Reference;
import java.nio.Buffer;

/** Norms of arrays on this worker. */
public final class Norms {
    private Norms() {
    }

    /**
     * Scales arrays, such as the gradients of all tables, in place, so that their common L2 norm is at
     * most maxNorm. If an array has a NaN or an infinity, throws an {@link InvalidException} and changes
     * nothing.
     *
     * @param maxNorm more than 0
     * @param arrays direct FloatBuffers and DoubleBuffers
     * @return the norm before scaling
     */
    public static double clipByGlobalNorm(double maxNorm, Buffer... arrays) {
        return clipByGlobalNorm(maxNorm, null, arrays);
    }

    /**
     * The same for elements whose type a buffer's class does not determine.
     *
     * @param maxNorm more than 0
     * @param dtype of all arrays' elements: F32, F64, F16 or BF16
     * @param arrays direct buffers
     * @return the norm before scaling
     */
    public static double clipByGlobalNorm(double maxNorm, DType dtype, Buffer... arrays) {
        int count = Arguments.given(arrays, "arrays").length;
        long[] addresses = new long[count];
        long[] counts = new long[count];
        int[] dtypes = new int[count];
        for (int i = 0; i < count; i++) {
            String name = "arrays[" + i + "]";
            Span span = DeviceMemory.onHost(Span.writable(Arguments.given(arrays[i], name), dtype), name);
            switch (span.dtype()) {
                case F32, F64, F16, BF16 -> dtypes[i] = span.dtype().number();
                default -> throw Shapes.refuse("arrays[%d] has elements of %s; F32, F64, F16 or BF16 are "
                        + "needed", i, span.dtype());
            }
            addresses[i] = span.address();
            counts[i] = span.count();
        }
        Room places = Room.of(addresses);
        Room lengths = Room.of(counts);
        Room types = Room.of(dtypes);
        Room norm = new Room(Double.BYTES);
        try {
            Native.dtrain_clip_by_global_norm(places.address(), lengths.address(), types.address(), count,
                    maxNorm, norm.address());
            return norm.bytes().getDouble(0);
        } finally {
            places.keep();
            lengths.keep();
            types.keep();
            norm.keep();
            Reference.reachabilityFence(arrays);
        }
    }
}
