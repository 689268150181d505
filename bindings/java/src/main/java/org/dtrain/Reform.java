// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;

/** How an elastic job goes on: {@code comm.reform(new Reform().minSize(4))}. */
public final class Reform {
    private int minSize;
    private int maxSize;
    private boolean leaves;
    private long timeout; // ns; 0: the option's

    /** At least one worker, no limit, and this one stays. */
    public Reform() {
    }

    /**
     * The number of workers, at least: if there are fewer, it waits for newcomers.
     *
     * @param workers 1 or more
     * @return this
     */
    public Reform minSize(int workers) {
        this.minSize = Arguments.positive(workers, "workers");
        return this;
    }

    /**
     * The number of workers, at most: other newcomers go on waiting.
     *
     * @param workers 1 or more
     * @return this
     */
    public Reform maxSize(int workers) {
        this.maxSize = Arguments.positive(workers, "workers");
        return this;
    }

    /**
     * This process leaves the job.
     *
     * @return this
     */
    public Reform leave() {
        this.leaves = true;
        return this;
    }

    /**
     * The time for everything.
     *
     * @param timeout instead of the option op.timeout
     * @return this
     */
    public Reform timeout(Duration timeout) {
        this.timeout = Durations.ofTimeout(timeout, "timeout");
        return this;
    }

    Room params() {
        Room room = new Room(ReformParams.bytes());
        ReformParams params = new ReformParams(room);
        params.prepare();
        params.setMin_size(minSize);
        params.setMax_size(maxSize);
        params.setLeaves(leaves ? 1 : 0);
        params.setTimeout_ns(timeout);
        return room;
    }
}
