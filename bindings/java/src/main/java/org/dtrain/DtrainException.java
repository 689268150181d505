// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.OptionalInt;

/**
 * What an operation failed with: a text that says what, where and what to do, the status of the C
 * API, and the guilty rank, where the library knows it. Statuses that programs tell apart have
 * classes of their own. Wrong arguments that Java sees itself are {@link IllegalArgumentException}s.
 */
public class DtrainException extends RuntimeException {
    private static final long serialVersionUID = 1;
    /** Its status. */
    private final Status status;
    /** The guilty rank, or less than 0. */
    private final int rank;

    DtrainException(Status status, String text, int rank) {
        super(text);
        this.status = status;
        this.rank = rank;
    }

    /**
     * Its status in the C API.
     *
     * @return which
     */
    public Status status() {
        return status;
    }

    /**
     * The guilty rank.
     *
     * @return empty where the library does not know one
     */
    public OptionalInt rank() {
        return rank < 0 ? OptionalInt.empty() : OptionalInt.of(rank);
    }
}
