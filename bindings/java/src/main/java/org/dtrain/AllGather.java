// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.List;

/** How ranks exchange some bytes before they are connected. */
@FunctionalInterface
public interface AllGather {
    /**
     * Called by all ranks and servers, in the thread that joins.
     *
     * @param mine this rank's bytes
     * @return those of all ranks in their order, then those of all servers, of the same length
     * @throws Exception it failed, and so does the join
     */
    List<byte[]> exchange(byte[] mine) throws Exception;
}
