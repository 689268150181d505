// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** The count of updates that rules use (ADAM, its variants, LAMB). */
public enum Steps {
    /** One count per element or row: rare rows are corrected as new ones. */
    OWN(1),
    /** The server's count for the table, as in optimizers that have one count for all. */
    TABLE(2);

    private final int number;

    Steps(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "table"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Steps of(String name) {
        return Names.find(Steps.class, name, Map.of());
    }
}
