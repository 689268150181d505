// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;

/** Converts durations for the C API, to nanoseconds. */
final class Durations {
    static final long FOREVER = -1;
    private static final Duration LONGEST = Duration.ofDays(36500);

    private Durations() {
    }

    /** A timeout; 0 is refused, since it means the default in the C API. */
    static long ofTimeout(Duration value, String name) {
        long found = of(value, name);
        return found == LONGEST.toNanos() ? FOREVER : found;
    }

    /** A setting; 0 is refused, since it means the default in the C API. */
    static long of(Duration value, String name) {
        Arguments.given(value, name);
        if (value.isNegative() || value.isZero()) {
            throw new IllegalArgumentException(name + " of " + value + "; it must be more than 0");
        }
        return value.compareTo(LONGEST) > 0 ? LONGEST.toNanos() : value.toNanos();
    }

    /** The limit of a wait, which may be 0. */
    static long ofWait(Duration value) {
        Arguments.given(value, "timeout");
        if (value.isNegative()) {
            throw new IllegalArgumentException("a timeout of " + value + "; it must be 0 or more");
        }
        return value.compareTo(LONGEST) > 0 ? LONGEST.toNanos() : value.toNanos();
    }
}
