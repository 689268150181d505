// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

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
}
