// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * A context's completion queue, with the thread that takes its events. It keeps the requests in
 * flight.
 */
final class Completions {
    private static final int DEPTH = 1 << 14;
    private static final long SLICE = 20_000_000; // ns that a poll waits for further events before the thread sleeps
    private final long queue;
    private final Map<Long, Request> inFlight = new HashMap<>();
    private final Set<Long> early = new HashSet<>(); // finished before their post has returned
    private final Thread thread;
    private boolean ended;

    Completions(long context) {
        queue = Native.dtrain_cq_create(context, DEPTH);
        thread = new Thread(this::run, "dtrain-completions");
        thread.setDaemon(true);
        thread.start();
    }

    long queue() {
        return queue;
    }

    /** Keeps a request that has been posted with the queue. */
    void watch(long number, Request request) {
        request.begun(number);
        synchronized (this) {
            if (!early.remove(number)) {
                inFlight.put(number, request);
                notify();
                return;
            }
        }
        request.finished();
    }

    void refuseOwnThread() {
        if (Thread.currentThread() == thread) {
            throw Status.BUSY.exception("a context cannot be closed by an action that depends on a request's "
                    + "future; use thenRunAsync() or another thread", -1);
        }
    }

    /** Call it when all operations have ended. */
    void close() {
        synchronized (this) {
            ended = true;
            notify();
        }
        boolean interrupted = false;
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException error) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        Native.dtrain_cq_destroy(queue);
    }

    private void run() {
        Events events = new Events(64);
        int count = 0;
        while (goOn(count == 0)) {
            count = Native.dtrain_cq_poll(queue, events.address(), events.max(), SLICE);
            for (int i = 0; i < count; i++) {
                finish(events.request(i));
            }
        }
    }

    private synchronized boolean goOn(boolean idle) {
        while (idle && inFlight.isEmpty() && !ended) {
            try {
                wait();
            } catch (InterruptedException error) {
                // no thread interrupts this one
            }
        }
        return !ended || !inFlight.isEmpty();
    }

    private void finish(long number) {
        Request request;
        synchronized (this) {
            request = inFlight.remove(number);
            if (request == null) {
                early.add(number);
                return;
            }
        }
        request.finished();
    }
}
