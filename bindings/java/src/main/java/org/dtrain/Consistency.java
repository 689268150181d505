// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** When pushes are applied, and what pulls see. */
public enum Consistency {
    /** Every push is applied at once; a pull returns the current values. */
    ASYNC(1),
    /** Pushes of one clock are applied together once all workers have ended it. */
    BSP(2),
    /** Pushes are applied at once; a pull waits for workers that are too far behind. */
    SSP(3),
    /** As BSP, but the first workers, a quorum, end the clock for all. */
    QUORUM(4);

    private final int number;

    Consistency(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "bsp"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Consistency of(String name) {
        return Names.find(Consistency.class, name, Map.of());
    }
}
