// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** What the mean of {@link Op#AVG} is taken over. */
public enum MeanOver {
    /** All whose pushes make the update, with or without the row. */
    WORKERS(1),
    /** Of each row those that have pushed it; sparse tables. */
    PUSHERS(2);

    private final int number;

    MeanOver(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case.
     *
     * @param name as "pushers"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static MeanOver of(String name) {
        return Names.find(MeanOver.class, name, Map.of());
    }
}
