// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.function.LongFunction;

/**
 * A prepared operation on fixed buffers, which {@link #start()} starts as often as it is called. The
 * buffers belong to the library from each start until the operation has finished.
 */
public final class Persistent implements AutoCloseable {
    private final Handle handle;

    Persistent(Handle owner, long request, Object[] kept) {
        handle = new Handle(owner, "prepared operation", request, Persistent::free);
        handle.keep(kept);
    }

    /**
     * Starts the operation. The start counts in the order of calls that all ranks keep.
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
     * Waits for the operation's end.
     *
     * @return its result
     * @throws DtrainException the operation failed
     * @throws InterruptedWaitException the thread was interrupted; the operation continues
     */
    public Result await() {
        return call(request -> {
            Outcome.await(request, -1);
            return Outcome.of(request).get();
        });
    }

    /**
     * Waits for the operation's end, at most this long.
     *
     * @param timeout 0 or more
     * @return its result
     * @throws TimedOutException it has not finished by then, and continues
     * @throws DtrainException the operation failed
     */
    public Result await(Duration timeout) {
        long wait = Durations.ofWait(timeout);
        return call(request -> {
            if (!Outcome.await(request, wait)) {
                throw Status.TIMEOUT.exception("not finished after " + timeout
                        + "; the operation continues", -1);
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

    /** Frees it. If it runs, waits for its end; a receive is canceled. */
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
