// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** What a row of a sparse table holds before its first push. */
public enum Initial {
    /** The initial value. */
    CONSTANT(1),
    /** From initial - spread up to initial + spread. */
    UNIFORM(2),
    /** Of mean initial and standard deviation spread. */
    NORMAL(3);

    private final int number;

    Initial(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case.
     *
     * @param name as "normal"
     * @return which
     * @throws IllegalArgumentException there is none of this name; the text lists what there is
     */
    public static Initial of(String name) {
        return Names.find(Initial.class, name, Map.of());
    }
}
