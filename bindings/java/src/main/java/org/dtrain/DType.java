// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/**
 * Types of elements. {@link Parameters#elements} names a type that a buffer's class does not
 * determine.
 */
public enum DType {
    /** Floating point, 32 bits: FloatBuffer. */
    F32(1, 4),
    /** Floating point, 64 bits: DoubleBuffer. */
    F64(2, 8),
    /** IEEE floating point of 16 bits. */
    F16(3, 2),
    /** bfloat16. */
    BF16(4, 2),
    /** Signed, 8 bits; a ByteBuffer always needs {@link Parameters#elements}. */
    I8(5, 1),
    /** Unsigned, 8 bits. */
    U8(6, 1),
    /** Signed, 16 bits: ShortBuffer. */
    I16(7, 2),
    /** Unsigned, 16 bits. */
    U16(8, 2),
    /** Signed, 32 bits: IntBuffer. */
    I32(9, 4),
    /** Unsigned, 32 bits. */
    U32(10, 4),
    /** Signed, 64 bits: LongBuffer. */
    I64(11, 8),
    /** Unsigned, 64 bits. */
    U64(12, 8);

    private static final Map<String, DType> OTHERS = Map.ofEntries(Map.entry("float", F32),
            Map.entry("float32", F32), Map.entry("double", F64), Map.entry("float64", F64),
            Map.entry("half", F16), Map.entry("float16", F16), Map.entry("bfloat16", BF16),
            Map.entry("int8", I8), Map.entry("uint8", U8), Map.entry("int16", I16), Map.entry("uint16",
            U16), Map.entry("int32", I32), Map.entry("uint32", U32), Map.entry("int64", I64),
            Map.entry("uint64", U64));
    private final int number;
    private final int bytes;

    DType(int number, int bytes) {
        this.number = number;
        this.bytes = bytes;
    }

    int number() {
        return number;
    }

    /**
     * The size of one element.
     *
     * @return bytes
     */
    public int bytes() {
        return bytes;
    }

    static DType of(int number) {
        return values()[number - 1];
    }

    /**
     * Finds a type by its name, in upper or lower case; also by the names of other packages.
     *
     * @param name for example "bfloat16"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static DType of(String name) {
        return Names.find(DType.class, name, OTHERS);
    }
}
