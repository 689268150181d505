// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** What rules that count updates (ADAM and its kin, LAMB) take for the number of one. */
public enum Steps {
    /** The element's, or row's, own: rare rows are corrected as new ones. */
    OWN(1),
    /** The table's on the server, as optimizers do that have one count for all. */
    TABLE(2);

    private final int number;

    Steps(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case.
     *
     * @param name as "table"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static Steps of(String name) {
        return Names.find(Steps.class, name, Map.of());
    }
}
