// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.ShortBuffer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Clipping by the norm of several buffers. */
@Tag("unit")
class NormsTest {
    @Test
    void typesTogether() {
        FloatBuffer x = Buffers.floats(3, 0);
        DoubleBuffer y = Buffers.bytes(8).asDoubleBuffer().put(0, 4);
        assertEquals(5, Norms.clipByGlobalNorm(5, x, y));
        assertEquals(3, x.get(0));
        assertEquals(5, Norms.clipByGlobalNorm(1, x, y));
        assertEquals(0.6f, x.get(0), 1e-6f);
        assertEquals(0.8, y.get(0), 1e-15);
        assertEquals(0, Norms.clipByGlobalNorm(1));
    }

    @Test
    void onlyWhatIsLeft() {
        FloatBuffer x = Buffers.floats(100, 3, 4, 100).position(1).limit(3);
        assertEquals(5, Norms.clipByGlobalNorm(2.5, x));
        assertEquals(100, x.get(0));
        assertEquals(2, x.get(2));
    }

    @Test
    void halves() {
        ShortBuffer x = Buffers.bytes(8).asShortBuffer();
        for (int i = 0; i < 4; i++) {
            x.put(i, (short) 0x4000); // 2
        }
        assertEquals(4, Norms.clipByGlobalNorm(2, DType.BF16, x));
        assertEquals((short) 0x3f80, x.get(3));
    }

    @Test
    void refused() {
        FloatBuffer x = Buffers.floats(3, 4);
        IntBuffer ints = Buffers.bytes(4).asIntBuffer();
        assertThrows(InvalidException.class,
                () -> Norms.clipByGlobalNorm(1, x, Buffers.floats(Float.POSITIVE_INFINITY)));
        assertThrows(InvalidException.class, () -> Norms.clipByGlobalNorm(0, x));
        says("arrays[1] has elements of I32", () -> Norms.clipByGlobalNorm(1, x, ints));
        says("arrays[1] is null", () -> Norms.clipByGlobalNorm(1, x, null));
        says("read-only", () -> Norms.clipByGlobalNorm(1, x.asReadOnlyBuffer()));
        assertEquals(3, x.get(0));
    }

    private static void says(String part, org.junit.jupiter.api.function.Executable call) {
        String text = assertThrows(IllegalArgumentException.class, call).getMessage();
        assertTrue(text.contains(part), text);
    }
}
