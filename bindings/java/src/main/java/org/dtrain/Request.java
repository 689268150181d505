// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * An operation in flight. Its buffers belong to the library until it has finished; they stay alive even if
 * the request is dropped.
 */
public final class Request {
    private final Handle owner;
    private final Room counted;
    private final CompletableFuture<Result> future = new CompletableFuture<>();
    private Object[] kept;
    private long request; // 0: freed
    private int users;    // threads in a call of it
    private boolean told; // the completion queue has reported its end
    private Outcome outcome;

    /** counted: memory of a number that is part of the result, or null. */
    Request(Handle owner, Room counted, Object[] kept) {
        this.owner = owner;
        this.counted = counted;
        this.kept = kept;
    }

    synchronized void begun(long request) {
        this.request = request;
    }

    /** Called by the completion thread. */
    void finished() {
        settle();
        synchronized (this) {
            told = true;
            giveBack();
        }
    }

    /**
     * Waits for the operation's end.
     *
     * @return its result
     * @throws DtrainException the operation failed
     * @throws InterruptedWaitException the thread was interrupted; the operation continues
     */
    public Result await() {
        await(-1);
        return result();
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
        if (!await(Durations.ofWait(timeout))) {
            throw Status.TIMEOUT.exception("not finished after " + timeout + "; the operation continues", -1);
        }
        return result();
    }

    /**
     * Whether it has finished, successfully or not.
     *
     * @return true if so
     */
    public boolean isDone() {
        return await(0);
    }

    /**
     * The result of a finished operation.
     *
     * @return the result
     * @throws StateException it has not finished
     * @throws DtrainException the operation failed
     */
    public Result result() {
        Outcome found = outcome();
        if (found == null) {
            throw Status.STATE.exception("the operation has not finished; await() it", -1);
        }
        return found.get();
    }

    /**
     * Asks the operation to end early: it still finishes, with a {@link CanceledException} if nothing was
     * done yet.
     *
     * @throws StateException it is a collective that other ranks may have begun
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
     * A thread of the context completes this future when the operation has finished, exceptionally if it
     * failed. Run actions that take long, or wait for other operations, in another thread:
     * thenApplyAsync() and similar.
     *
     * @return a new future; canceling it does not affect the operation
     */
    public CompletableFuture<Result> future() {
        return future.copy();
    }

    private boolean await(long timeout) {
        if (outcome() != null) {
            return true;
        }
        if (!owner.tryEnter()) { // closing it ends the operation
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
            // result() reports it
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
