// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** The learning rate as a function of the number of the table's update: a factor of n = decaySteps, d = decay
 * and s, which are the updates since the warmup. */
public enum Schedule {
    /** It is 1. */
    CONSTANT(1),
    /** From 1 to d in n updates, and then d. */
    LINEAR(2),
    /** From 1 to d in n updates, and then d, along half a cosine. */
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
     * By its name, in upper or lower case.
     *
     * @param name as "cosine"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static Schedule of(String name) {
        return Names.find(Schedule.class, name, Map.of());
    }
}
