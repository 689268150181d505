// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** Where servers keep a table. */
public enum TableMemory {
    /** In their host memory. */
    HOST(1),
    /** In the memory of a GPU, which also applies the update rule; dense tables. */
    CUDA(2);

    private final int number;

    TableMemory(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name, in upper or lower case.
     *
     * @param name for example "cuda"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static TableMemory of(String name) {
        return Names.find(TableMemory.class, name, Map.of());
    }
}
