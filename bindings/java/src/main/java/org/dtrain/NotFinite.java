// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** How a part of a push that contains a NaN or an infinity is treated. */
public enum NotFinite {
    /** It is applied like any other. */
    TAKE(1),
    /** It is an error, which names the element or key and the worker. */
    REFUSE(2),
    /** It is dropped and counted. */
    DROP(3);

    private final int number;

    NotFinite(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "drop"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static NotFinite of(String name) {
        return Names.find(NotFinite.class, name, Map.of());
    }
}
