// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;

/** A queue of named tensors, made by {@link Communicator#gradients}. */
public final class Gradients extends BlockingGradients implements AutoCloseable {
    /** Settings of a queue; unset ones come from the options. */
    public static final class Settings {
        private long bucketBytes;
        private long cycle;
        private long stallWarn;
        private long stallFail;

        /** All settings unset. */
        public Settings() {
        }

        /**
         * Tensors are packed together up to this size.
         *
         * @param bytes the same on all ranks
         * @return this
         */
        public Settings bucketBytes(long bytes) {
            bucketBytes = Arguments.positive(bytes, "bucketBytes");
            return this;
        }

        /**
         * The least time between two checks of what is ready.
         *
         * @param time at most a second
         * @return this
         */
        public Settings cycle(Duration time) {
            cycle = Durations.of(time, "cycle");
            return this;
        }

        /**
         * A tensor that has waited this long for other ranks is logged.
         *
         * @param time more than 0
         * @return this
         */
        public Settings stallWarn(Duration time) {
            stallWarn = Durations.ofTimeout(time, "stallWarn");
            return this;
        }

        /**
         * A tensor that has waited this long for other ranks fails.
         *
         * @param time more than 0
         * @return this
         */
        public Settings stallFail(Duration time) {
            stallFail = Durations.ofTimeout(time, "stallFail");
            return this;
        }

        private long create(long comm) {
            Room room = new Room(GradientsParams.bytes());
            GradientsParams params = new GradientsParams(room);
            params.prepare();
            params.setBucket_bytes(bucketBytes);
            params.setCycle_ns(cycle);
            params.setStall_warn_ns(stallWarn);
            params.setStall_fail_ns(stallFail);
            try {
                return Native.dtrain_gradients_create(comm, room.address());
            } finally {
                room.keep();
            }
        }
    }

    /**
     * Counts of this rank's queue.
     *
     * @param cycles small exchanges of what is ready
     * @param exchanges cycles that a full exchange followed
     * @param tensors that were reduced
     * @param buckets all-reduces of data
     * @param fusedTensors tensors that were packed with others
     * @param fusedBytes bytes of their buckets
     * @param stalls stall reports logged
     */
    public record Stats(long cycles, long exchanges, long tensors, long buckets, long fusedTensors,
            long fusedBytes, long stalls) {
    }

    private final Context context;
    private final Handle handle;

    private Gradients(Context context, Handle handle) {
        super(context, handle, new Parameters());
        this.context = context;
        this.handle = handle;
    }

    static Gradients create(Context context, Handle comm, Settings settings) {
        Arguments.given(settings, "settings");
        return new Gradients(context, comm.make("gradient queue", settings::create,
                Native::dtrain_gradients_destroy));
    }

    /**
     * The same operations with parameters.
     *
     * @param parameters copied during this call
     * @return the operations
     */
    public BlockingGradients using(Parameters parameters) {
        return new BlockingGradients(context, handle, Parameters.copyOf(parameters));
    }

    /**
     * Counts since the queue was created.
     *
     * @return the counts
     */
    public Stats stats() {
        Room room = new Room(GradientsCounters.bytes());
        GradientsCounters stats = new GradientsCounters(room);
        stats.prepare();
        handle.call(queue -> Native.dtrain_gradients_stats(queue, room.address()));
        Stats found = new Stats(stats.getCycles(), stats.getExchanges(), stats.getTensors(),
                stats.getBuckets(), stats.getFused_tensors(), stats.getFused_bytes(), stats.getStalls());
        room.keep();
        return found;
    }

    /** Ends the queue on all ranks. */
    @Override
    public void close() {
        handle.close();
    }
}
