// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;

/** Durations as the C API takes them, in nanoseconds. */
final class Durations {
    static final long FOREVER = -1;
    private static final Duration LONGEST = Duration.ofDays(36500);

    private Durations() {
    }

    /** Of a time-out, where 0 would mean that nothing is said. */
    static long ofTimeout(Duration value, String name) {
        long found = of(value, name);
        return found == LONGEST.toNanos() ? FOREVER : found;
    }

    /** Of a setting, where 0 would mean that nothing is said. */
    static long of(Duration value, String name) {
        Arguments.given(value, name);
        if (value.isNegative() || value.isZero()) {
            throw new IllegalArgumentException(name + " of " + value + "; it is more than 0");
        }
        return value.compareTo(LONGEST) > 0 ? LONGEST.toNanos() : value.toNanos();
    }

    /** Of a wait, which may be 0. */
    static long ofWait(Duration value) {
        Arguments.given(value, "timeout");
        if (value.isNegative()) {
            throw new IllegalArgumentException("a timeout of " + value + "; it is 0 or more");
        }
        return value.compareTo(LONGEST) > 0 ? LONGEST.toNanos() : value.toNanos();
    }
}
