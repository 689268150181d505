// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;

/** A parameter server within a program, made by {@link Context#serve}; it serves in the background. */
public final class Server implements AutoCloseable {
    private static final long SLICE = 20_000_000; // ns between two checks for interrupts
    private final Handle handle;

    Server(Handle context, Join join) {
        handle = context.make("server", join::serve, Native::dtrain_server_destroy);
    }

    /**
     * Waits until all workers have left.
     *
     * @throws DtrainException the job failed
     * @throws InterruptedWaitException the thread was interrupted
     */
    public void await() {
        await(Duration.ofDays(36500));
    }

    /**
     * Waits until all workers have left, at most this long.
     *
     * @param timeout 0 or more
     * @return false: some worker has not left by then
     * @throws DtrainException the job failed
     * @throws InterruptedWaitException the thread was interrupted
     */
    public boolean await(Duration timeout) {
        long end = System.nanoTime() + Durations.ofWait(timeout);
        while (true) {
            long left = Math.max(0, Math.min(SLICE, end - System.nanoTime()));
            if (handle.call(server -> Native.dtrain_server_wait(server, left)) == Status.OK.number()) {
                return true;
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new InterruptedWaitException();
            }
            if (left == 0) {
                return false;
            }
        }
    }

    /**
     * Weights ({@link TableSettings#weights}) for dedicated servers followed by workers that serve. They
     * minimize the load of the busiest link.
     *
     * @param workers of the job
     * @param dedicated servers
     * @param serving workers that serve, at most all
     * @return a weight for each server
     */
    public static int[] weights(int workers, int dedicated, int serving) {
        int[] weights = new int[Math.addExact(Math.max(0, dedicated), Math.max(0, serving))];
        Room room = Room.of(weights);
        Native.dtrain_server_weights(workers, Math.max(0, dedicated), Math.max(0, serving), room.address());
        room.bytes().asIntBuffer().get(weights);
        room.keep();
        return weights;
    }

    /**
     * What the server has counted.
     *
     * @return a text for Prometheus
     */
    public String stats() {
        handle.enter();
        try {
            return Text.read((address, bytes) -> Native.dtrain_stats_server(handle.address, address, bytes));
        } finally {
            handle.leave();
        }
    }

    /** Ends the server; workers that still need it get a {@link PeerException}. */
    @Override
    public void close() {
        handle.close();
    }
}
