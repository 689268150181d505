// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** What callers must say, and numbers by which they would say something else than they mean. */
final class Arguments {
    private Arguments() {
    }

    static <T> T given(T value, String name) {
        if (value == null) {
            throw new IllegalArgumentException(name + " is null; it is needed here");
        }
        return value;
    }

    /** Of which 0 is the C API's word for the default. */
    static long positive(long value, String name) {
        if (value <= 0) {
            throw new IllegalArgumentException(name + " of " + value + "; it is more than 0");
        }
        return value;
    }

    static int positive(int value, String name) {
        return (int) positive((long) value, name);
    }

    static double positive(double value, String name) {
        if (!(value > 0 && Double.isFinite(value))) {
            throw new IllegalArgumentException(name + " of " + value + "; it is more than 0, and finite");
        }
        return value;
    }

    /** A factor of a reduction. */
    static double finite(double value, String name) {
        if (!Double.isFinite(value)) {
            throw new IllegalArgumentException(name + " of " + value + "; it is finite");
        }
        return value;
    }
}
