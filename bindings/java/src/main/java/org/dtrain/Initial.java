// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** What a row of a sparse table holds before its first push. */
public enum Initial {
    /** The initial value. */
    CONSTANT(1),
    /** Uniform, from initial - spread up to initial + spread. */
    UNIFORM(2),
    /** Normal, with mean initial and standard deviation spread. */
    NORMAL(3);

    private final int number;

    Initial(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "normal"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Initial of(String name) {
        return Names.find(Initial.class, name, Map.of());
    }
}
