// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/**
 * Rounds of compute and reduce over arrays, in tasks of an engine that can exchange texts between them, such as the
 * barrier stages of Spark:
 *
 * <pre>{@code
 * try (Rounds rounds = Rounds.join(context.partitionId(), tasks, context::allGather)) {
 *     double[] weights = rounds.run(initial, 100, Op.SUM,
 *             (round, model) -> gradient(model, samples),
 *             (model, sum) -> step(model, sum));
 * }
 * }</pre>
 */
public final class Rounds implements AutoCloseable {
    private final Context context;
    private final Communicator world;
    private ByteBuffer room = ByteBuffer.allocateDirect(0);

    /** How the engine's tasks exchange texts before they are connected. */
    @FunctionalInterface
    public interface Exchange {
        /**
         * Called by all tasks, such as Spark's {@code BarrierTaskContext.allGather}.
         *
         * @param mine this task's text
         * @return the texts of all tasks, by rank
         * @throws Exception makes the join fail
         */
        String[] allGather(String mine) throws Exception;
    }

    /** What a rank contributes to a round. */
    @FunctionalInterface
    public interface Compute {
        /**
         * Computes a contribution, such as the gradient of this rank's samples.
         *
         * @param round from 0
         * @param model the same on every rank; not to be changed
         * @return of the same length on every rank in every round; overwritten by the reduced values
         */
        double[] compute(int round, double[] model);
    }

    /** What all ranks do at the end of a round. */
    @FunctionalInterface
    public interface Update {
        /**
         * Changes the model in place, by the same computation on every rank.
         *
         * @param model to be changed
         * @param reduced the contributions of all ranks
         */
        void update(double[] model, double[] reduced);
    }

    private Rounds(Context context, Communicator world) {
        this.context = context;
        this.world = world;
    }

    /**
     * Joins the other tasks.
     *
     * @param rank of this task
     * @param size how many tasks there are
     * @param exchange between the tasks
     * @return to be closed at the end of the task
     */
    public static Rounds join(int rank, int size, Exchange exchange) {
        return join(rank, size, exchange, new Options());
    }

    /**
     * The same with options.
     *
     * @param rank of this task
     * @param size how many tasks there are
     * @param exchange between the tasks
     * @param options of the context
     * @return to be closed at the end of the task
     */
    public static Rounds join(int rank, int size, Exchange exchange, Options options) {
        Arguments.given(exchange, "exchange");
        Context context = Context.create(Arguments.given(options, "options"));
        try {
            return new Rounds(context, context.join(Join.by(mine -> exchange(exchange, mine)).size(size).rank(rank)));
        } catch (RuntimeException | Error error) {
            context.close();
            throw error;
        }
    }

    private static List<byte[]> exchange(Exchange exchange, byte[] mine) throws Exception {
        List<byte[]> all = new ArrayList<>();
        for (String text : exchange.allGather(Base64.getEncoder().encodeToString(mine))) {
            all.add(Base64.getDecoder().decode(text));
        }
        return all;
    }

    /**
     * This task's rank.
     *
     * @return from 0
     */
    public int rank() {
        return world.rank();
    }

    /**
     * How many tasks there are.
     *
     * @return all of them
     */
    public int size() {
        return world.size();
    }

    /**
     * All tasks, for other operations and for tables, with direct buffers.
     *
     * @return closed with this object
     */
    public Communicator world() {
        return world;
    }

    /**
     * Copies rank 0's values to all ranks.
     *
     * @param values changed in place; as long on every rank
     * @return the same array
     */
    public double[] broadcast(double[] values) {
        DoubleBuffer buffer = doubles(Arguments.given(values, "values"));
        world.broadcast(buffer, 0);
        buffer.get(0, values);
        return values;
    }

    /**
     * Copies rank 0's values to all ranks.
     *
     * @param values changed in place; as long on every rank
     * @return the same array
     */
    public float[] broadcast(float[] values) {
        FloatBuffer buffer = floats(Arguments.given(values, "values"));
        world.broadcast(buffer, 0);
        buffer.get(0, values);
        return values;
    }

    /**
     * Reduces the values of all ranks; every rank gets the result.
     *
     * @param values changed in place; as long on every rank
     * @param op such as Op.SUM
     * @return the same array
     */
    public double[] reduce(double[] values, Op op) {
        DoubleBuffer buffer = doubles(Arguments.given(values, "values"));
        world.allreduce(buffer, Arguments.given(op, "op"));
        buffer.get(0, values);
        return values;
    }

    /**
     * Reduces the values of all ranks; every rank gets the result.
     *
     * @param values changed in place; as long on every rank
     * @param op such as Op.SUM
     * @return the same array
     */
    public float[] reduce(float[] values, Op op) {
        FloatBuffer buffer = floats(Arguments.given(values, "values"));
        world.allreduce(buffer, Arguments.given(op, "op"));
        buffer.get(0, values);
        return values;
    }

    /**
     * Broadcasts rank 0's model, then in each round computes, reduces and updates it. Every rank must make this call
     * with as many rounds.
     *
     * @param model as long on every rank; not changed
     * @param rounds how many
     * @param op how contributions are reduced
     * @param compute this rank's contribution
     * @param update what follows from all of them
     * @return the model at the end, the same on every rank
     */
    public double[] run(double[] model, int rounds, Op op, Compute compute, Update update) {
        double[] current = broadcast(Arguments.given(model, "model").clone());
        Arguments.given(op, "op");
        Arguments.given(compute, "compute");
        Arguments.given(update, "update");
        for (int round = 0; round < rounds; round++) {
            update.update(current, reduce(compute.compute(round, current), op));
        }
        return current;
    }

    private DoubleBuffer doubles(double[] values) {
        DoubleBuffer buffer = bytes((long) Double.BYTES * values.length).asDoubleBuffer();
        return buffer.put(0, values);
    }

    private FloatBuffer floats(float[] values) {
        FloatBuffer buffer = bytes((long) Float.BYTES * values.length).asFloatBuffer();
        return buffer.put(0, values);
    }

    /** Memory outside of the heap, kept from round to round. */
    private ByteBuffer bytes(long size) {
        int wanted = Math.toIntExact(size);
        if (room.capacity() < wanted) {
            room = ByteBuffer.allocateDirect(wanted).order(ByteOrder.nativeOrder());
        }
        return room.slice(0, wanted).order(ByteOrder.nativeOrder());
    }

    /** Leaves the job. */
    @Override
    public void close() {
        context.close();
    }
}
