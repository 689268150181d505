// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.util.Arrays;

/**
 * Collective operations and messages of a communicator. All ranks call the same collectives in the
 * same order. Buffers must be direct; they are used without a copy from their position to their limit,
 * which do not change. A ByteBuffer needs {@link Parameters#elements} for the type of its elements, else
 * it is refused. With one buffer an operation is in place. A block is the part of a buffer that belongs
 * to one rank; counts are the elements of each rank's block, and displacements say where the blocks
 * begin (null: one after the other).
 *
 * @param <R> what calls return: a {@link Result} when they are done, or a {@link Request}, or a
 *     {@link Persistent}
 */
public class Collectives<R> {
    /** For {@link #recv}: a message from any rank. */
    public static final int ANY_RANK = -1;
    private final Way<R> way;
    private final long comm;
    private final int rank;
    private final int size;

    Collectives(Way<R> way, int rank, int size) {
        this.way = way;
        this.comm = way.owner.address;
        this.rank = rank;
        this.size = size;
    }

    int rankOfGroup() {
        return rank;
    }

    int sizeOfGroup() {
        return size;
    }

    /**
     * The sum of all ranks' buffers, in place.
     *
     * @param buffer input and result
     * @return the result, or the request of the operation (see R)
     */
    public R allreduce(Buffer buffer) {
        return allreduce(buffer, Op.SUM);
    }

    /**
     * All ranks' buffers reduced, in place.
     *
     * @param buffer input and result
     * @param op the reduction
     * @return the result, or the request of the operation (see R)
     */
    public R allreduce(Buffer buffer, Op op) {
        Span both = output(buffer);
        return allreduce(both, both, op, buffer, null);
    }

    /**
     * All ranks' buffers reduced.
     *
     * @param send input
     * @param recv result, of the same length
     * @param op the reduction
     * @return the result, or the request of the operation (see R)
     */
    public R allreduce(Buffer send, Buffer recv, Op op) {
        return allreduce(input(send), output(recv), op, send, recv);
    }

    private R allreduce(Span in, Span out, Op op, Buffer send, Buffer recv) {
        long count = Shapes.alike(in, out);
        return way.run(params -> Native.dtrain_allreduce(comm, in.address(), out.address(), count,
                in.dtype().number(), Op.number(op), params), send, recv);
    }

    /**
     * All ranks' buffers reduced; only root gets the result.
     *
     * @param send input
     * @param recv result, of the same length; not read on other ranks
     * @param op the reduction
     * @param root the rank that gets the result
     * @return the result, or the request of the operation (see R)
     */
    public R reduce(Buffer send, Buffer recv, Op op, int root) {
        Span in = input(send);
        Span out = rank == root ? output(recv) : in;
        long count = Shapes.alike(in, out);
        return way.run(params -> Native.dtrain_reduce(comm, in.address(), rank == root ? out.address() : 0,
                count, in.dtype().number(), Op.number(op), root, params), send, recv);
    }

    /**
     * The reduced buffers, one block for each rank. In place: recv is this rank's block of send.
     *
     * @param send input, a block for each rank
     * @param recv result: this rank's block
     * @param op the reduction
     * @return the result, or the request of the operation (see R)
     */
    public R reduceScatter(Buffer send, Buffer recv, Op op) {
        Span in = input(send);
        Span out = output(recv);
        long count = Shapes.blocks(out, in, size);
        return way.run(params -> Native.dtrain_reduce_scatter(comm, in.address(), out.address(), count,
                in.dtype().number(), Op.number(op), params), send, recv);
    }

    /**
     * As reduceScatter, with separate lengths for the blocks.
     *
     * @param send input, a block for each rank
     * @param recv result: this rank's block
     * @param counts elements of each block
     * @param op the reduction
     * @return the result, or the request of the operation (see R)
     */
    public R reduceScatterv(Buffer send, Buffer recv, long[] counts, Op op) {
        Span in = input(send);
        Span out = output(recv);
        Shapes.ragged(out, in, counts, null, size, rank);
        Room numbers = Room.of(counts);
        return way.run(params -> Native.dtrain_reduce_scatterv(comm, in.address(), out.address(),
                numbers.address(), in.dtype().number(), Op.number(op), params), send, recv, numbers);
    }

    /**
     * Gathers all ranks' buffers. In place: send is this rank's block of recv.
     *
     * @param send input
     * @param recv result: a block of each rank
     * @return the result, or the request of the operation (see R)
     */
    public R allgather(Buffer send, Buffer recv) {
        Span in = input(send);
        Span out = output(recv);
        long count = Shapes.blocks(in, out, size);
        return way.run(params -> Native.dtrain_allgather(comm, in.address(), out.address(), count,
                in.dtype().number(), params), send, recv);
    }

    /**
     * As allgather, with separate lengths for the blocks.
     *
     * @param send input
     * @param recv result: a block of each rank
     * @param counts elements of each block
     * @param displs where blocks begin, or null
     * @return the result, or the request of the operation (see R)
     */
    public R allgatherv(Buffer send, Buffer recv, long[] counts, long[] displs) {
        Span in = input(send);
        Span out = output(recv);
        Shapes.ragged(in, out, counts, displs, size, rank);
        Room numbers = Room.of(counts);
        Room places = places(displs);
        return way.run(params -> Native.dtrain_allgatherv(comm, in.address(), out.address(),
                numbers.address(), address(places), in.dtype().number(), params), send, recv, numbers, places);
    }

    /**
     * Copies root's buffer to all ranks.
     *
     * @param buffer the input on root, the result on other ranks
     * @param root the rank that has the input
     * @return the result, or the request of the operation (see R)
     */
    public R broadcast(Buffer buffer, int root) {
        Span whole = rank == root ? input(buffer) : output(buffer);
        return way.run(params -> Native.dtrain_broadcast(comm, whole.address(), whole.count(),
                whole.dtype().number(), root, params), buffer);
    }

    /**
     * Gathers all ranks' buffers on root.
     *
     * @param send input
     * @param recv result: a block of each rank; not read on other ranks
     * @param root the rank that gets them
     * @return the result, or the request of the operation (see R)
     */
    public R gather(Buffer send, Buffer recv, int root) {
        Span in = input(send);
        Span out = rank == root ? output(recv) : null;
        long count = out == null ? in.count() : Shapes.blocks(in, out, size);
        return way.run(params -> Native.dtrain_gather(comm, in.address(), address(out), count,
                in.dtype().number(), root, params), send, recv);
    }

    /**
     * As gather, with separate lengths for the blocks.
     *
     * @param send input
     * @param recv result: a block of each rank; not read on other ranks
     * @param counts elements of each block, on every rank
     * @param displs where blocks begin, or null
     * @param root the rank that gets them
     * @return the result, or the request of the operation (see R)
     */
    public R gatherv(Buffer send, Buffer recv, long[] counts, long[] displs, int root) {
        Span in = input(send);
        Span out = rank == root ? output(recv) : null;
        Shapes.ragged(in, out, counts, displs, size, rank);
        Room numbers = Room.of(counts);
        Room places = places(displs);
        return way.run(params -> Native.dtrain_gatherv(comm, in.address(), address(out),
                numbers.address(), address(places), in.dtype().number(), root, params), send, recv, numbers,
                places);
    }

    /**
     * Sends one of root's blocks to each rank.
     *
     * @param send input of root: a block for each rank; not read on other ranks
     * @param recv result
     * @param root the rank that has the input
     * @return the result, or the request of the operation (see R)
     */
    public R scatter(Buffer send, Buffer recv, int root) {
        Span in = rank == root ? input(send) : null;
        Span out = output(recv);
        long count = in == null ? out.count() : Shapes.blocks(out, in, size);
        return way.run(params -> Native.dtrain_scatter(comm, address(in), out.address(), count,
                out.dtype().number(), root, params), send, recv);
    }

    /**
     * As scatter, with separate lengths for the blocks.
     *
     * @param send input of root: a block for each rank; not read on other ranks
     * @param recv result
     * @param counts elements of each block, on every rank
     * @param displs where blocks begin, or null
     * @param root the rank that has the input
     * @return the result, or the request of the operation (see R)
     */
    public R scatterv(Buffer send, Buffer recv, long[] counts, long[] displs, int root) {
        Span in = rank == root ? input(send) : null;
        Span out = output(recv);
        Shapes.ragged(out, in, counts, displs, size, rank);
        Room numbers = Room.of(counts);
        Room places = places(displs);
        return way.run(params -> Native.dtrain_scatterv(comm, address(in), out.address(),
                numbers.address(), address(places), out.dtype().number(), root, params), send, recv, numbers,
                places);
    }

    /**
     * Block j of send goes to rank j; block j of recv comes from rank j.
     *
     * @param send input: a block for each rank
     * @param recv result: a block of each rank
     * @return the result, or the request of the operation (see R)
     */
    public R alltoall(Buffer send, Buffer recv) {
        Span in = input(send);
        Span out = output(recv);
        long count = Shapes.exchanged(in, out, size);
        return way.run(params -> Native.dtrain_alltoall(comm, in.address(), out.address(), count,
                in.dtype().number(), params), send, recv);
    }

    /**
     * As alltoall, with a separate block length for each pair of ranks.
     *
     * @param send input: a block for each rank
     * @param sendCounts elements of each of its blocks
     * @param sendDispls where they begin, or null
     * @param recv result: a block of each rank
     * @param recvCounts elements of each of its blocks
     * @param recvDispls where they begin, or null
     * @return the result, or the request of the operation (see R)
     */
    public R alltoallv(Buffer send, long[] sendCounts, long[] sendDispls, Buffer recv,
            long[] recvCounts, long[] recvDispls) {
        Span in = input(send);
        Span out = output(recv);
        Shapes.sameType(in, out);
        Shapes.within(in, sendCounts, sendDispls, size);
        Shapes.within(out, recvCounts, recvDispls, size);
        Room[] rooms = {Room.of(sendCounts), places(sendDispls), Room.of(recvCounts), places(recvDispls)};
        long[] at = Arrays.stream(rooms).mapToLong(Collectives::address).toArray();
        return way.run(params -> Native.dtrain_alltoallv(comm, in.address(), at[0], at[1], out.address(),
                at[2], at[3], in.dtype().number(), params), send, recv, rooms);
    }

    /**
     * Completes once all ranks have called it.
     *
     * @return the result, or the request of the operation (see R)
     */
    public R barrier() {
        return way.run(params -> Native.dtrain_barrier(comm, params));
    }

    /**
     * Sends a message. Messages of one tag arrive in order.
     *
     * @param buffer its elements
     * @param peer the receiver; may be this rank
     * @param tag any number
     * @return the result, or the request of the operation (see R)
     */
    public R send(Buffer buffer, int peer, int tag) {
        Span in = input(buffer);
        return way.run(params -> Native.dtrain_send(comm, in.address(), in.count(), in.dtype().number(),
                peer, tag, params), buffer);
    }

    /**
     * Receives a message; the result has its length and its sender.
     *
     * @param buffer for its elements; a longer message is a {@link TruncatedException}
     * @param peer the sender, or {@link #ANY_RANK}
     * @param tag its number
     * @return the result, or the request of the operation (see R)
     */
    public R recv(Buffer buffer, int peer, int tag) {
        Span out = output(buffer);
        return way.find(params -> Native.dtrain_recv(comm, out.address(), out.count(),
                out.dtype().number(), peer, tag, params), buffer);
    }

    private Span input(Buffer buffer) {
        return Span.of(buffer, way.parameters.elements());
    }

    private Span output(Buffer buffer) {
        return Span.writable(buffer, way.parameters.elements());
    }

    private static Room places(long[] displs) {
        return displs == null ? null : Room.of(displs);
    }

    private static long address(Room room) {
        return room == null ? 0 : room.address();
    }

    private static long address(Span span) {
        return span == null ? 0 : span.address();
    }
}
