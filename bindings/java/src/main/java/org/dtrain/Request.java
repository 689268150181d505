// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * An operation in flight. Its buffers are the library's until it has finished, and are kept so long,
 * also when nobody keeps the request.
 */
public final class Request {
    private final Handle owner;
    private final Room counted;
    private final CompletableFuture<Result> future = new CompletableFuture<>();
    private Object[] kept;
    private long request; // 0: given back
    private int users;    // threads in a call of it
    private boolean told; // the completion queue has told of its end
    private Outcome outcome;

    /** counted: where a number lies that is part of the result, or null. */
    Request(Handle owner, Room counted, Object[] kept) {
        this.owner = owner;
        this.counted = counted;
        this.kept = kept;
    }

    synchronized void begun(long request) {
        this.request = request;
    }

    /** By the completion thread. */
    void finished() {
        settle();
        synchronized (this) {
            told = true;
            giveBack();
        }
    }

    /**
     * Waits for its end.
     *
     * @return its result
     * @throws DtrainException what it failed with
     * @throws InterruptedWaitException the thread was interrupted; the operation goes on
     */
    public Result await() {
        await(-1);
        return result();
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
        if (!await(Durations.ofWait(timeout))) {
            throw Status.TIMEOUT.exception("not finished after " + timeout + "; the operation goes on", -1);
        }
        return result();
    }

    /**
     * Whether it has finished, well or not.
     *
     * @return true if so
     */
    public boolean isDone() {
        return await(0);
    }

    /**
     * The result of a finished operation.
     *
     * @return what it tells
     * @throws StateException it has not finished
     * @throws DtrainException what it failed with
     */
    public Result result() {
        Outcome found = outcome();
        if (found == null) {
            throw Status.STATE.exception("the operation has not finished; await() it", -1);
        }
        return found.get();
    }

    /**
     * Asks for an early end: it still finishes, with a {@link CanceledException} if nothing was done
     * yet.
     *
     * @throws StateException other ranks may have begun it (collectives)
     */
    public void cancel() {
        if (enter()) {
            try {
                Native.dtrain_request_cancel(request);
            } finally {
                leave();
            }
        }
    }

    /**
     * Completed when the operation has finished, exceptionally if it failed, by a thread of the
     * context's. What depends on it and takes long, or waits for other operations, belongs to
     * another thread: thenApplyAsync() and its like.
     *
     * @return a new one, whose cancelling changes nothing of the operation
     */
    public CompletableFuture<Result> future() {
        return future.copy();
    }

    private boolean await(long timeout) {
        if (outcome() != null) {
            return true;
        }
        if (!owner.tryEnter()) { // its end ends the operation
            return awaitTold(timeout);
        }
        try {
            if (enter()) {
                try {
                    if (!Outcome.await(request, timeout)) {
                        return false;
                    }
                    settle();
                } finally {
                    leave();
                }
            }
            return true;
        } finally {
            owner.leave();
        }
    }

    private boolean awaitTold(long timeout) {
        try {
            future.get(timeout < 0 ? Long.MAX_VALUE : timeout, TimeUnit.NANOSECONDS);
        } catch (ExecutionException error) {
            // result() tells
        } catch (TimeoutException error) {
            return false;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new InterruptedWaitException();
        }
        return true;
    }

    private synchronized Outcome outcome() {
        return outcome;
    }

    private void settle() {
        synchronized (this) {
            if (outcome != null) {
                return;
            }
            outcome = Outcome.of(request).counted(counted);
            kept = null;
        }
        if (outcome.failed()) {
            future.completeExceptionally(outcome.error());
        } else {
            future.complete(outcome.result());
        }
    }

    private synchronized boolean enter() {
        if (request == 0) {
            return false;
        }
        users++;
        return true;
    }

    private synchronized void leave() {
        users--;
        giveBack();
    }

    private void giveBack() {
        if (told && users == 0 && request != 0) {
            Native.dtrain_request_free(request);
            request = 0;
        }
    }
}
