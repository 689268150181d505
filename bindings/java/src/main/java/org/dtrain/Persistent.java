// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.function.LongFunction;

/**
 * A prepared operation on the same buffers, which {@link #start()} begins as often as it is called.
 * The buffers are the library's from each start to its end.
 */
public final class Persistent implements AutoCloseable {
    private final Handle handle;

    Persistent(Handle owner, long request, Object[] kept) {
        handle = new Handle(owner, "prepared operation", request, Persistent::free);
        handle.keep(kept);
    }

    /**
     * Begins the operation, which has its place here in the order of calls that all ranks keep.
     *
     * @throws BusyException it has not finished
     */
    public void start() {
        call(request -> {
            Room one = Room.of(request);
            Native.dtrain_request_start(one.address(), 1);
            one.keep();
            return null;
        });
    }

    /**
     * Waits for its end.
     *
     * @return its result
     * @throws DtrainException what it failed with
     * @throws InterruptedWaitException the thread was interrupted; the operation goes on
     */
    public Result await() {
        return call(request -> {
            Outcome.await(request, -1);
            return Outcome.of(request).get();
        });
    }

    /**
     * Waits for its end, so long.
     *
     * @param timeout 0 or more
     * @return its result
     * @throws TimedOutException it has not finished by then, and goes on
     * @throws DtrainException what it failed with
     */
    public Result await(Duration timeout) {
        long wait = Durations.ofWait(timeout);
        return call(request -> {
            if (!Outcome.await(request, wait)) {
                throw Status.TIMEOUT.exception("not finished after " + timeout
                        + "; the operation goes on", -1);
            }
            return Outcome.of(request).get();
        });
    }

    /**
     * Whether it has finished, or was not started yet.
     *
     * @return true if so
     */
    public boolean isDone() {
        return call(request -> Outcome.await(request, 0));
    }

    /** Gives it back. If it runs, its end is waited for; a receive is cancelled. */
    @Override
    public void close() {
        handle.close();
    }

    private <T> T call(LongFunction<T> function) {
        handle.enter();
        try {
            return function.apply(handle.address);
        } finally {
            handle.leave();
        }
    }

    private static void free(long request) {
        NativeJNI.dtrain_request_cancel(request); // a collective refuses
        boolean interrupted = false;
        while (!Outcome.finished(request)) {
            try {
                Outcome.await(request, -1);
            } catch (InterruptedWaitException error) {
                interrupted = Thread.interrupted();
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        Native.dtrain_request_free(request);
    }
}
