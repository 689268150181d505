// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** What a reduction does. */
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

    private final int number;

    Op(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }
}
