// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;

/**
 * Averages with neighbours instead of all ranks: collectives of the graph's communicator.
 *
 * @param <R> what calls return: a {@link Result} when they are done, or a {@link Request}, or a
 *     {@link Persistent}
 */
public class GraphOperations<R> {
    private final Way<R> way;
    private final long graph;
    private final int in;
    private final int out;

    GraphOperations(Way<R> way, int in, int out) {
        this.way = way;
        this.graph = way.owner.address;
        this.in = in;
        this.out = out;
    }

    int incoming() {
        return in;
    }

    int outgoing() {
        return out;
    }

    /**
     * The weighted mean of this rank's values and those of its in-neighbours, in place.
     *
     * @param buffer input and result
     * @return as the way of the call has it
     */
    public R average(Buffer buffer) {
        return average(buffer, buffer);
    }

    /**
     * The weighted mean of this rank's values and those of its in-neighbours.
     *
     * @param send input
     * @param recv result, as long
     * @return as the way of the call has it
     */
    public R average(Buffer send, Buffer recv) {
        Span from = input(send);
        Span to = output(recv);
        long count = Shapes.alike(from, to);
        return way.run(params -> Native.dtrain_neighbor_average(graph, from.address(), to.address(), count,
                from.dtype().number(), params), send, recv);
    }

    /**
     * The values of each in-neighbour.
     *
     * @param send this rank's
     * @param recv a block for each in-neighbour, in their order
     * @return as the way of the call has it
     */
    public R allgather(Buffer send, Buffer recv) {
        Span from = input(send);
        Span to = output(recv);
        long count = Shapes.blocks(from, to, in);
        return way.run(params -> Native.dtrain_neighbor_allgather(graph, from.address(), to.address(),
                count, from.dtype().number(), params), send, recv);
    }

    /**
     * A block to each out-neighbour, and one from each in-neighbour.
     *
     * @param send blocks for the out-neighbours, in their order
     * @param recv blocks of the in-neighbours, in their order
     * @return as the way of the call has it
     */
    public R alltoall(Buffer send, Buffer recv) {
        Span from = input(send);
        Span to = output(recv);
        Shapes.sameType(from, to);
        long count = out == 0 ? in == 0 ? 0 : to.count() / in : from.count() / out;
        if (from.count() != count * out || to.count() != count * in) {
            throw Shapes.refuse("the buffers have %d and %d elements, not %d and %d equal blocks",
                    from.count(), to.count(), out, in);
        }
        return way.run(params -> Native.dtrain_neighbor_alltoall(graph, from.address(), to.address(), count,
                from.dtype().number(), params), send, recv);
    }

    private Span input(Buffer buffer) {
        return Span.of(buffer, way.parameters.elements());
    }

    private Span output(Buffer buffer) {
        return Span.writable(buffer, way.parameters.elements());
    }
}
