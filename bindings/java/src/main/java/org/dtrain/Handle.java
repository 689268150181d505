// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;

/**
 * An object of the C API. Calls enter and leave it. It is closed when no call is in it, after the objects
 * that were made with it, the newest first.
 */
final class Handle {
    /** A function of the C API, with a result of at least 0. */
    interface Call {
        long with(long address);
    }

    private static final int CLAIMED = Integer.MIN_VALUE / 2; // far below any number of threads
    private static final long PAUSE = 100_000; // ns
    private static final VarHandle USERS;

    static {
        try {
            USERS = MethodHandles.lookup().findVarHandle(Handle.class, "users", int.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    final long address;
    private final Handle maker;
    private final String what;
    private final LongConsumer destroy;
    private final List<Handle> made = new ArrayList<>();
    private volatile Object kept;
    @SuppressWarnings("unused")
    private volatile int users;
    private volatile boolean closed;

    /** maker: closing it closes this, too; null: no maker. */
    Handle(Handle maker, String what, long address, LongConsumer destroy) {
        this.maker = maker;
        this.what = what;
        this.address = address;
        this.destroy = destroy;
        if (maker != null) {
            synchronized (maker.made) {
                maker.made.add(this);
            }
        }
    }

    /** Called before a call that uses the address. */
    void enter() {
        if (!tryEnter()) {
            throw closed ? Status.STATE.exception("this " + what + " is closed", -1)
                    : Status.BUSY.exception("another thread is closing this " + what, -1);
        }
    }

    boolean tryEnter() {
        if ((int) USERS.getAndAdd(this, 1) >= 0) {
            return true;
        }
        leave();
        return false;
    }

    void leave() {
        USERS.getAndAdd(this, -1);
    }

    long call(Call call) {
        enter();
        try {
            return call.with(address);
        } finally {
            leave();
        }
    }

    /** Runs a call that makes an object, which is closed with this one; null for NULL. */
    Handle make(String name, Call call, LongConsumer end) {
        enter();
        try {
            long made = call.with(address);
            return made == 0 ? null : new Handle(this, name, made, end);
        } finally {
            leave();
        }
    }

    boolean isClosed() {
        return closed;
    }

    /** Keeps objects alive that C uses until this is closed. */
    void keep(Object used) {
        kept = used;
    }

    void close() {
        while (!closed && !tryClose()) {
            LockSupport.parkNanos(PAUSE);
        }
    }

    /** false: an object was made with it meanwhile, or another thread is closing it. */
    private boolean tryClose() {
        for (Handle child : children()) {
            child.close();
        }
        if (!USERS.compareAndSet(this, 0, CLAIMED)) {
            if (users < 0) {
                return closed;
            }
            throw Status.BUSY.exception("another thread is in a call of this " + what
                    + "; wait for it first", -1);
        }
        if (!children().isEmpty()) {
            USERS.getAndAdd(this, -CLAIMED);
            return false;
        }
        try {
            destroy.accept(address);
            closed = true;
        } catch (BusyException error) { // it stays open
            USERS.getAndAdd(this, -CLAIMED);
            throw error;
        } catch (DtrainException error) {
            closed = true;
            throw error;
        } finally {
            if (closed) {
                forget();
            }
        }
        return true;
    }

    private void forget() {
        kept = null;
        if (maker != null) {
            synchronized (maker.made) {
                maker.made.remove(this);
            }
        }
    }

    private List<Handle> children() {
        synchronized (made) {
            List<Handle> youngest = new ArrayList<>(made);
            Collections.reverse(youngest);
            return youngest;
        }
    }
}
