// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Chooses the servers of the blocks of a table; must be the same on all workers. */
@FunctionalInterface
public interface PlaceFunction {
    /**
     * Called for each block in turn, in the thread that makes the table.
     *
     * @param first element or key of the block
     * @param count elements or keys
     * @param servers number of servers
     * @return the number of the block's server, from 0
     * @throws Exception makes the creation of the table fail
     */
    int server(long first, long count, int servers) throws Exception;
}
