// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** When pushes are applied, and what pulls see. */
public enum Consistency {
    /** Every push is applied at once; a pull returns what is there. */
    ASYNC(1),
    /** Pushes of one clock are applied together once all workers have ended it. */
    BSP(2),
    /** Pushes are applied at once; a pull waits for workers that are too far behind. */
    SSP(3),
    /** As BSP, but some of the workers end the clock for all. */
    QUORUM(4);

    private final int number;

    Consistency(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case.
     *
     * @param name as "bsp"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static Consistency of(String name) {
        return Names.find(Consistency.class, name, Map.of());
    }
}
