// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * What a finished operation tells.
 *
 * @param bytes moved into the caller's buffer (receive, pull)
 * @param peer the sender of what was received, else -1
 * @param version of tables: the version read or made
 * @param count of rows, where they were counted
 */
public record Result(long bytes, int peer, long version, long count) {
    /** Of operations that are done, and tell no more. */
    static final Result DONE = new Result(0, -1, 0, 0);

    /** With the number in a room; null: without one. */
    Result counted(Room counted) {
        return counted == null ? this : new Result(bytes, peer, version, counted.bytes().getLong(0));
    }
}
