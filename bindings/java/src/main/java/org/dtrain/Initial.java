// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

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
}
