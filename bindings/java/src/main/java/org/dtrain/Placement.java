// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** Which servers hold the parts of a table. */
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
    /** Chosen by a {@link PlaceFunction}. */
    USER(6);

    private final int number;

    Placement(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name; case, hyphens and underscores are ignored.
     *
     * @param name for example "round-robin"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Placement of(String name) {
        return Names.find(Placement.class, name, Map.of());
    }
}
