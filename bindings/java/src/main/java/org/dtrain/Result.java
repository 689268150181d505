// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * The outcome of a finished operation.
 *
 * @param bytes moved into the caller's buffer (receive, pull)
 * @param peer the sender of what was received, else -1
 * @param version of tables: the version that was read or made
 * @param count of rows, if the operation counted them
 */
public record Result(long bytes, int peer, long version, long count) {
    /** The result of operations without further values. */
    static final Result DONE = new Result(0, -1, 0, 0);

    /** This result with the number in room; null: without one. */
    Result counted(Room counted) {
        return counted == null ? this : new Result(bytes, peer, version, counted.bytes().getLong(0));
    }
}
