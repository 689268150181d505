// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Checks of arguments: null, and numbers whose meaning would differ in the C API. */
final class Arguments {
    private Arguments() {
    }

    static <T> T given(T value, String name) {
        if (value == null) {
            throw new IllegalArgumentException(name + " is null; it is required");
        }
        return value;
    }

    /** For numbers whose 0 means the default in the C API. */
    static long positive(long value, String name) {
        if (value <= 0) {
            throw new IllegalArgumentException(name + " of " + value + "; it must be more than 0");
        }
        return value;
    }

    static int positive(int value, String name) {
        return (int) positive((long) value, name);
    }

    static double positive(double value, String name) {
        if (!(value > 0 && Double.isFinite(value))) {
            throw new IllegalArgumentException(name + " of " + value + "; it must be more than 0 and finite");
        }
        return value;
    }

    /** A factor of a reduction. */
    static double finite(double value, String name) {
        if (!Double.isFinite(value)) {
            throw new IllegalArgumentException(name + " of " + value + "; it must be finite");
        }
        return value;
    }
}
