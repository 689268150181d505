// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** The workers that the mean of {@link Op#AVG} counts. */
public enum MeanOver {
    /** All workers whose pushes make the update, with or without the row. */
    WORKERS(1),
    /** For each row the workers that have pushed it; sparse tables. */
    PUSHERS(2);

    private final int number;

    MeanOver(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "pushers"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static MeanOver of(String name) {
        return Names.find(MeanOver.class, name, Map.of());
    }
}
