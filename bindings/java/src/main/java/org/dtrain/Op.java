// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/** Operations of reductions. */
public enum Op {
    /** The sum. */
    SUM(1),
    /** The mean; that of integers is exact, rounded toward zero. */
    AVG(2),
    /** The product. */
    PROD(3),
    /** The least. */
    MIN(4),
    /** The greatest. */
    MAX(5),
    /** And of the bits, for integers. */
    BAND(6),
    /** Or of the bits, for integers. */
    BOR(7),
    /** Exclusive or of the bits, for integers. */
    BXOR(8),
    /** For all-reduce of floating types: gradients that agree are averaged, orthogonal ones added. */
    ADASUM(9);

    private static final Map<String, Op> OTHERS = Map.of("add", SUM, "average", AVG, "mean", AVG, "product",
            PROD);
    private final int number;

    Op(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * By its name, in upper or lower case, also "add", "mean", "average" and "product".
     *
     * @param name for example "sum"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Op of(String name) {
        return Names.find(Op.class, name, OTHERS);
    }

    static int number(Op op) {
        return Arguments.given(op, "op").number;
    }
}
