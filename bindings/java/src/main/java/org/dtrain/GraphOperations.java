// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;

/**
 * Averages with neighbors instead of all ranks: collectives of the graph's communicator.
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
     * The weighted mean of this rank's values and those of its in-neighbors, in place.
     *
     * @param buffer input and result
     * @return the result, or the request of the operation (see R)
     */
    public R average(Buffer buffer) {
        return average(buffer, buffer);
    }

    /**
     * The weighted mean of this rank's values and those of its in-neighbors.
     *
     * @param send input
     * @param recv result, of the same length
     * @return the result, or the request of the operation (see R)
     */
    public R average(Buffer send, Buffer recv) {
        Span from = input(send);
        Span to = output(recv);
        long count = Shapes.alike(from, to);
        return way.run(params -> Native.dtrain_neighbor_average(graph, from.address(), to.address(), count,
                from.dtype().number(), params), send, recv);
    }

    /**
     * The values of each in-neighbor.
     *
     * @param send this rank's values
     * @param recv a block for each in-neighbor, in their order
     * @return the result, or the request of the operation (see R)
     */
    public R allgather(Buffer send, Buffer recv) {
        Span from = input(send);
        Span to = output(recv);
        long count = Shapes.blocks(from, to, in);
        return way.run(params -> Native.dtrain_neighbor_allgather(graph, from.address(), to.address(),
                count, from.dtype().number(), params), send, recv);
    }

    /**
     * Sends a block to each out-neighbor, and gets one from each in-neighbor.
     *
     * @param send blocks for the out-neighbors, in their order
     * @param recv blocks of the in-neighbors, in their order
     * @return the result, or the request of the operation (see R)
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
