// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.util.Map;

/**
 * All-reduces of one f32 vector with less on the wire, and error feedback; made by
 * {@link Communicator#compressor}. docs/COMPRESSION.md tells what to choose.
 */
public final class Compressor implements AutoCloseable {
    /** How elements are compressed. */
    public enum Kind {
        /** To f16. */
        F16,
        /** To bf16. */
        BF16,
        /** To bytes with a scale for each block. */
        INT8,
        /** The elements of greatest magnitude. */
        TOPK,
        /** Signs, and a mean magnitude for each block. */
        ONEBIT,
        /** A matrix of low rank. */
        POWERSGD;

        int number() {
            return ordinal() + 1;
        }

        /**
         * By its name, in upper or lower case.
         *
         * @param name as "topk"
         * @return which
         * @throws IllegalArgumentException there is none of this name; the text lists what there is
         */
        public static Kind of(String name) {
            return Names.find(Kind.class, name, Map.of("float16", F16, "bfloat16", BF16, "1bit", ONEBIT));
        }
    }

    /** What a compressor does; what is not said is as usual. */
    public static final class Settings {
        static final int NO_FEEDBACK = 1;
        static final int STOCHASTIC = 2;
        private final Kind kind;
        private final long count;
        private int flags;
        private int block;
        private int rank;
        private long rows;
        private long seed;
        private double ratio;

        /**
         * Of this kind.
         *
         * @param kind which
         * @param count elements of the vector
         */
        public Settings(Kind kind, long count) {
            this.kind = Arguments.given(kind, "kind");
            this.count = count;
        }

        /**
         * What is not sent is lost.
         *
         * @return this
         */
        public Settings withoutFeedback() {
            flags |= NO_FEEDBACK;
            return this;
        }

        /**
         * INT8 rounds at random.
         *
         * @return this
         */
        public Settings stochastic() {
            flags |= STOCHASTIC;
            return this;
        }

        /**
         * Elements with a scale of their own, of INT8 and ONEBIT.
         *
         * @param elements a multiple of 8
         * @return this
         */
        public Settings block(int elements) {
            block = Arguments.positive(elements, "block");
            return this;
        }

        /**
         * Of POWERSGD.
         *
         * @param rank at most 64
         * @return this
         */
        public Settings rank(int rank) {
            this.rank = Arguments.positive(rank, "rank");
            return this;
        }

        /**
         * Of POWERSGD's matrix.
         *
         * @param rows a divisor of the count
         * @return this
         */
        public Settings rows(long rows) {
            this.rows = Arguments.positive(rows, "rows");
            return this;
        }

        /**
         * Of what is random.
         *
         * @param seed any number
         * @return this
         */
        public Settings seed(long seed) {
            this.seed = seed;
            return this;
        }

        /**
         * The part of the elements that TOPK sends.
         *
         * @param ratio up to 1
         * @return this
         */
        public Settings ratio(double ratio) {
            this.ratio = Arguments.positive(ratio, "ratio");
            return this;
        }

        private long create(long comm) {
            Room room = new Room(CompressorParams.bytes());
            CompressorParams params = new CompressorParams(room);
            params.prepare();
            params.setKind(kind.number());
            params.setCount(count);
            params.setFlags(flags);
            params.setBlock(block);
            params.setRank(rank);
            params.setRows(rows);
            params.setSeed(seed);
            params.setRatio(ratio);
            try {
                return Native.dtrain_compressor_create(comm, room.address());
            } finally {
                room.keep();
            }
        }
    }

    /**
     * What a compressor saved.
     *
     * @param operations done
     * @param rawBytes that would have been sent without compression
     * @param sentBytes that were sent
     * @param residual norm of what is kept for later
     */
    public record Stats(long operations, long rawBytes, long sentBytes, double residual) {
    }

    private final Handle handle;
    private final long count;
    private final Way<Result> blocking;
    private final Context context;
    private Way<Request> started;

    private Compressor(Context context, Handle handle, long count) {
        this.context = context;
        this.handle = handle;
        this.count = count;
        blocking = new BlockingWay(context.abandoned(), handle, new Parameters());
    }

    static Compressor create(Context context, Handle comm, Settings settings) {
        return new Compressor(context, comm.make("compressor", settings::create,
                Native::dtrain_compressor_destroy), settings.count);
    }

    /**
     * The sum or mean over ranks, nearly, in place. Collective, one at a time.
     *
     * @param buffer input and result
     * @param op SUM or AVG
     * @return when it is done
     */
    public Result allreduce(Buffer buffer, Op op) {
        return allreduce(buffer, buffer, op);
    }

    /**
     * The sum or mean over ranks, nearly. Collective, one at a time.
     *
     * @param send input
     * @param recv result; may be the same buffer
     * @param op SUM or AVG
     * @return when it is done
     */
    public Result allreduce(Buffer send, Buffer recv, Op op) {
        return run(blocking, send, recv, op);
    }

    /**
     * As allreduce(), begun only.
     *
     * @param send input
     * @param recv result; may be the same buffer
     * @param op SUM or AVG
     * @return at once
     */
    public Request startAllreduce(Buffer send, Buffer recv, Op op) {
        synchronized (this) {
            if (started == null) {
                started = new StartedWay(context.completions(), handle, new Parameters());
            }
        }
        return run(started, send, recv, op);
    }

    /** Forgets what was kept; on all ranks between the same two operations. */
    public void reset() {
        handle.call(Native::dtrain_compressor_reset);
    }

    /**
     * What it saved.
     *
     * @return since it was made
     */
    public Stats stats() {
        Room room = new Room(CompressionStatsParams.bytes());
        CompressionStatsParams stats = new CompressionStatsParams(room);
        handle.call(of -> Native.dtrain_compressor_stats(of, room.address()));
        Stats found = new Stats(stats.getOperations(), stats.getRaw_bytes(), stats.getSent_bytes(),
                stats.getResidual());
        room.keep();
        return found;
    }

    /** Gives it back; a pending operation ends with a {@link CanceledException}. */
    @Override
    public void close() {
        handle.close();
    }

    private <R> R run(Way<R> way, Buffer send, Buffer recv, Op op) {
        Span in = Span.of(send, DType.F32);
        Span out = Span.writable(recv, DType.F32);
        if (Shapes.alike(in, out) != count) {
            throw Shapes.refuse("the compressor is for %d elements, the buffer has %d", count, in.count());
        }
        return way.run(params -> Native.dtrain_compressor_allreduce(handle.address, in.address(),
                out.address(), Op.number(op), params), send, recv);
    }
}
