// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** What becomes of a part of a push that has a NaN or an infinity. */
public enum NotFinite {
    /** It is taken as any number. */
    TAKE(1),
    /** It is an error, which names the element or key and the worker. */
    REFUSE(2),
    /** As if it had not come; it is counted. */
    DROP(3);

    private final int number;

    NotFinite(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case.
     *
     * @param name as "drop"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static NotFinite of(String name) {
        return Names.find(NotFinite.class, name, Map.of());
    }
}
