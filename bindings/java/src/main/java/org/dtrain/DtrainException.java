// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.OptionalInt;

/**
 * The error of a failed operation: a text that says what failed, where, and what to do, the status of the C
 * API, and the rank that failed, if the library knows it. Statuses that programs distinguish have their own
 * classes. Wrong arguments that this package detects are {@link IllegalArgumentException}s.
 */
public class DtrainException extends RuntimeException {
    private static final long serialVersionUID = 1;
    /** Its status. */
    private final Status status;
    /** The rank that failed, or less than 0. */
    private final int rank;

    DtrainException(Status status, String text, int rank) {
        super(text);
        this.status = status;
        this.rank = rank;
    }

    /**
     * Its status in the C API.
     *
     * @return the value
     */
    public Status status() {
        return status;
    }

    /**
     * The rank that failed.
     *
     * @return empty if the library does not know it
     */
    public OptionalInt rank() {
        return rank < 0 ? OptionalInt.empty() : OptionalInt.of(rank);
    }
}
