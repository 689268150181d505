// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Objects that C calls by their numbers. Their exceptions do not reach C. */
final class Callbacks {
    /** An exchange while a context joins. Its exception is the cause of the join's failure. */
    static final class Exchange {
        private final AllGather function;
        private final int size;
        private volatile Throwable failure;

        Exchange(AllGather function, int size) {
            this.function = function;
            this.size = size;
        }

        private void run(ByteBuffer mine, ByteBuffer all) throws Exception {
            byte[] bytes = new byte[mine.remaining()];
            mine.get(bytes);
            List<byte[]> found = function.exchange(bytes);
            if (found == null) {
                throw new IllegalArgumentException("exchange() returned null");
            }
            if (found.size() != size) {
                throw new IllegalArgumentException("exchange() returned bytes of " + found.size()
                        + " ranks, not " + size);
            }
            for (byte[] of : found) {
                if (of == null || of.length != bytes.length) {
                    throw new IllegalArgumentException("exchange() returned "
                            + (of == null ? "null instead of the" : of.length + " of the") + " bytes of a "
                            + "rank, which are " + bytes.length);
                }
            }
            found.forEach(all::put);
        }

        <E extends Throwable> E explain(E error) {
            if (failure != null) {
                error.initCause(failure);
            }
            return error;
        }
    }

    private static final Map<Long, Object> OBJECTS = new ConcurrentHashMap<>();
    private static final AtomicLong NEXT = new AtomicLong(1);

    private Callbacks() {
    }

    static long add(Object object) {
        long number = NEXT.getAndIncrement();
        OBJECTS.put(number, object);
        return number;
    }

    static void remove(long number) {
        OBJECTS.remove(number);
    }

    /** Called by C. */
    static void log(int level, long number, ByteBuffer line) {
        if (OBJECTS.get(number) instanceof LogSink sink) {
            try {
                LogSink.Level[] levels = LogSink.Level.values();
                sink.log(levels[Math.min(Math.max(level, 1), levels.length) - 1], Text.of(line));
            } catch (Throwable error) {
                Thread thread = Thread.currentThread();
                thread.getUncaughtExceptionHandler().uncaughtException(thread, error);
            }
        }
    }

    /** Called by C; returns whether it succeeded. */
    static boolean allgather(long number, ByteBuffer mine, ByteBuffer all) {
        if (!(OBJECTS.get(number) instanceof Exchange exchange)) {
            return false;
        }
        try {
            exchange.run(mine, all);
            return true;
        } catch (Throwable error) {
            exchange.failure = error;
            return false;
        }
    }

    /** A function that places the blocks of a table, with its exception if it failed. */
    static final class Place {
        private final PlaceFunction function;
        private volatile Throwable failure;

        Place(PlaceFunction function) {
            this.function = function;
        }

        <E extends Throwable> E explain(E error) {
            if (failure != null) {
                error.initCause(failure);
            }
            return error;
        }
    }

    /** Called by C; returns the number of a server, or -1, which C refuses. */
    static int place(long number, long first, long count, int servers) {
        if (!(OBJECTS.get(number) instanceof Place place)) {
            return -1;
        }
        try {
            return place.function.server(first, count, servers);
        } catch (Throwable error) {
            place.failure = error;
            return -1;
        }
    }
}
