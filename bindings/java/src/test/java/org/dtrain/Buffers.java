// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/** Direct buffers for tests. */
final class Buffers {
    private Buffers() {
    }

    static ByteBuffer bytes(int size) {
        return ByteBuffer.allocateDirect(size).order(ByteOrder.nativeOrder());
    }

    static FloatBuffer floats(float... values) {
        return bytes(4 * values.length).asFloatBuffer().put(values).flip();
    }

    static IntBuffer ints(int... values) {
        return bytes(4 * values.length).asIntBuffer().put(values).flip();
    }

    static LongBuffer longs(long... values) {
        return bytes(8 * values.length).asLongBuffer().put(values).flip();
    }

    static float[] array(FloatBuffer buffer) {
        float[] values = new float[buffer.remaining()];
        buffer.duplicate().get(values);
        return values;
    }

    static int[] array(IntBuffer buffer) {
        int[] values = new int[buffer.remaining()];
        buffer.duplicate().get(values);
        return values;
    }
}
