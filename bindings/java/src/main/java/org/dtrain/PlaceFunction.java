// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Says where the blocks of a table are put; the same on all workers. */
@FunctionalInterface
public interface PlaceFunction {
    /**
     * Called for each block in turn, in the thread that makes the table.
     *
     * @param first element or key of the block
     * @param count elements or keys
     * @param servers how many there are
     * @return the number of the block's server, from 0
     * @throws Exception it failed, and so does the making of the table
     */
    int server(long first, long count, int servers) throws Exception;
}
