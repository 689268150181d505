// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** How an operation ended: with a result or with an error. */
record Outcome(Result result, int status, String text, int rank) {
    private static final int IN_PROGRESS = Status.IN_PROGRESS.number();
    private static final long SLICE = 20_000_000; // ns between two checks for interrupts
    private static final ThreadLocal<Events> EVENT = ThreadLocal.withInitial(() -> new Events(1));

    /**
     * Waits up to timeout ns (below 0: no limit) and returns whether the operation has finished.
     */
    static boolean await(long request, long timeout) {
        long left = timeout;
        while (true) {
            boolean last = timeout >= 0 && left <= SLICE;
            if (Native.dtrain_request_wait(request, last ? left : SLICE) != IN_PROGRESS) {
                return true; // a failure of the wait itself is found by of()
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new InterruptedWaitException();
            }
            if (last) {
                return false;
            }
            left -= SLICE;
        }
    }

    static boolean finished(long request) {
        return Native.dtrain_request_result(request, EVENT.get().address()) == 0;
    }

    /** The outcome of a finished operation. */
    static Outcome of(long request) {
        Events events = EVENT.get();
        long status = Native.dtrain_request_result(request, events.address());
        if (status < 0) { // it has not finished: the wait for it failed
            throw Failures.last((int) status);
        }
        Result result = new Result(events.bytes(0), events.peer(0), events.version(0), 0);
        if (events.status(0) == 0) {
            return new Outcome(result, 0, null, -1);
        }
        String text = Text.read((address, bytes) -> Native.dtrain_request_error(request, address, bytes));
        return new Outcome(result, events.status(0), text, events.peer(0));
    }

    /** Returns the result, or throws the operation's error. */
    Result get() {
        if (failed()) {
            throw error();
        }
        return result;
    }

    Outcome counted(Room room) {
        return room == null ? this : new Outcome(result.counted(room), status, text, rank);
    }

    boolean failed() {
        return status < 0;
    }

    DtrainException error() {
        return Failures.of(status, text, rank);
    }
}
