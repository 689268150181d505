// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.util.Map;

/**
 * Compressed all-reduces of one f32 vector with error feedback, made by {@link Communicator#compressor}.
 * docs/COMPRESSION.md says which kind to choose.
 */
public final class Compressor implements AutoCloseable {
    /** How elements are compressed. */
    public enum Kind {
        // from dtrain.h, by ./dev generate
        /** Magnitudes above 65504 become infinite. */
        F16(1),
        /** The range of f32, 8 bits of precision. */
        BF16(2),
        /** The greatest magnitude of a block becomes 127. */
        INT8(3),
        /** Exactly the elements of greatest magnitude. */
        TOPK(4),
        /** Signs, and the mean magnitude of each block. */
        ONEBIT(5),
        /** A matrix of low rank. */
        POWERSGD(6),
        // the end of what is generated
        ;

        private final int number;

        Kind(int number) {
            this.number = number;
        }

        int number() {
            return number;
        }

        /**
         * Finds a value by its name, in upper or lower case.
         *
         * @param name for example "topk"
         * @return the value
         * @throws IllegalArgumentException no value has this name; the text lists all names
         */
        public static Kind of(String name) {
            return Names.find(Kind.class, name, Map.of("float16", F16, "bfloat16", BF16, "1bit", ONEBIT));
        }
    }

    /** Settings of a compressor; unset ones have their defaults. */
    public static final class Settings {
        static final int NO_FEEDBACK = 1;
        static final int STOCHASTIC = 2;
        private final Kind kind;
        private final long count;
        private int flags;
        private int block;
        private int rank;
        private long rows;
        private long[] matrices = {};
        private long seed;
        private double ratio;

        /**
         * Settings for this kind.
         *
         * @param kind how elements are compressed
         * @param count elements of the vector
         */
        public Settings(Kind kind, long count) {
            this.kind = Arguments.given(kind, "kind");
            this.count = count;
        }

        /**
         * What a step does not send is lost.
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
         * INT8, ONEBIT: elements that share one scale.
         *
         * @param elements a multiple of 8
         * @return this
         */
        public Settings block(int elements) {
            block = Arguments.positive(elements, "block");
            return this;
        }

        /**
         * POWERSGD: rank of the approximation.
         *
         * @param rank at most 64
         * @return this
         */
        public Settings rank(int rank) {
            this.rank = Arguments.positive(rank, "rank");
            return this;
        }

        /**
         * POWERSGD: rows of the matrix.
         *
         * @param rows a divisor of the count
         * @return this
         */
        public Settings rows(long rows) {
            this.rows = Arguments.positive(rows, "rows");
            return this;
        }

        /**
         * POWERSGD of a vector that consists of several matrices, one after the other.
         *
         * @param rowsAndColumns of each in turn
         * @return this
         */
        public Settings matrices(long... rowsAndColumns) {
            if (Arguments.given(rowsAndColumns, "rowsAndColumns").length % 2 != 0) {
                throw new IllegalArgumentException("matrices: rows and columns in turn, but they are "
                        + rowsAndColumns.length + " numbers");
            }
            matrices = rowsAndColumns.clone();
            return this;
        }

        /**
         * Seed of random numbers.
         *
         * @param seed any number
         * @return this
         */
        public Settings seed(long seed) {
            this.seed = seed;
            return this;
        }

        /**
         * TOPK: the share of the elements that a rank sends.
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
            Room pairs = new Room(8L * matrices.length);
            if (matrices.length > 0) {
                pairs.bytes().asLongBuffer().put(matrices);
                params.setMatrices(pairs.address());
                params.setMatrix_count(matrices.length / 2);
            }
            try {
                return Native.dtrain_compressor_create(comm, room.address());
            } finally {
                room.keep();
                pairs.keep();
            }
        }
    }

    /**
     * Counts of a compressor.
     *
     * @param operations that are done
     * @param rawBytes that would have been sent without compression
     * @param sentBytes that were sent
     * @param residual norm of what is kept for the next step
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
     * Approximately the sum or mean over ranks, in place. Collective, one at a time.
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
     * As allreduce(), but starts the operation and returns its request.
     *
     * @param send input
     * @param recv result; may be the same buffer
     * @param op SUM or AVG
     * @return the request
     */
    public Request startAllreduce(Buffer send, Buffer recv, Op op) {
        synchronized (this) {
            if (started == null) {
                started = new StartedWay(context.completions(), handle, new Parameters());
            }
        }
        return run(started, send, recv, op);
    }

    /**
     * Discards what earlier steps have kept; call it on all ranks between the same two operations.
     */
    public void reset() {
        handle.call(Native::dtrain_compressor_reset);
    }

    /**
     * Counts since the compressor was created.
     *
     * @return the counts
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

    /** Frees it; a pending operation ends with a {@link CanceledException}. */
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
