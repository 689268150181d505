// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** Where the parts of a table are put. */
public enum Placement {
    /** Contiguous ranges of elements, or of keys. */
    RANGE(1),
    /** By a hash. */
    HASH(2),
    /** On a circle with virtual nodes. */
    CONSISTENT(3),
    /** The whole table on one server, the next one in turn. */
    ROUND_ROBIN(4),
    /** The whole table on the server that tables fill least. */
    GREEDY(5),
    /** As a {@link PlaceFunction} says. */
    USER(6);

    private final int number;

    Placement(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case; hyphens and underscores do not count.
     *
     * @param name as "round-robin"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static Placement of(String name) {
        return Names.find(Placement.class, name, Map.of());
    }
}
