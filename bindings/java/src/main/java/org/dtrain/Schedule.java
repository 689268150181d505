// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** Schedules: a factor of the learning rate as a function of n = decaySteps, d = decay and s, the number of
 * the table's updates since the warmup. */
public enum Schedule {
    /** It is 1. */
    CONSTANT(1),
    /** From 1 to d in n updates, then d. */
    LINEAR(2),
    /** From 1 to d in n updates along half a cosine, then d. */
    COSINE(3),
    /** It is d^(s / n). */
    EXPONENTIAL(4),
    /** It is d^floor(s / n). */
    STAIRCASE(5),
    /** It is sqrt(n / (n + s)). */
    INVERSE_SQRT(6);

    private final int number;

    Schedule(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "cosine"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Schedule of(String name) {
        return Names.find(Schedule.class, name, Map.of());
    }
}
