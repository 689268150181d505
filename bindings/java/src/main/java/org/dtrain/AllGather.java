// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.List;

/** Exchanges some bytes between ranks before they are connected. */
@FunctionalInterface
public interface AllGather {
    /**
     * Called by all ranks and servers, in the thread that joins.
     *
     * @param mine this rank's bytes
     * @return the bytes of all ranks in their order, then those of all servers; all of the same length
     * @throws Exception makes the join fail
     */
    List<byte[]> exchange(byte[] mine) throws Exception;
}
