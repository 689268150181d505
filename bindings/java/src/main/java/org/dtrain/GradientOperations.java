// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;

/**
 * Named tensors that ranks submit in any order: they are packed together and reduced once every rank has
 * submitted them.
 *
 * @param <R> what calls return: a {@link Result} when they are done, or a {@link Request}
 */
public class GradientOperations<R> {
    private final Way<R> way;
    private final long queue;

    GradientOperations(Way<R> way) {
        this.way = way;
        this.queue = way.owner.address;
    }

    /**
     * The mean of all ranks' tensors of this name, in place.
     *
     * @param name 1 to 255 bytes
     * @param buffer input and result
     * @return the result, or the request of the operation (see R)
     */
    public R submit(String name, Buffer buffer) {
        return submit(name, buffer, buffer, Op.AVG);
    }

    /**
     * All ranks' tensors of this name reduced, in place.
     *
     * @param name 1 to 255 bytes
     * @param buffer input and result
     * @param op the reduction
     * @return the result, or the request of the operation (see R)
     */
    public R submit(String name, Buffer buffer, Op op) {
        return submit(name, buffer, buffer, op);
    }

    /**
     * All ranks' tensors of this name reduced.
     *
     * @param name 1 to 255 bytes
     * @param send input
     * @param recv result, of the same length; may be the same buffer
     * @param op the reduction
     * @return the result, or the request of the operation (see R)
     */
    public R submit(String name, Buffer send, Buffer recv, Op op) {
        Arguments.given(name, "name");
        Span in = Span.of(send, way.parameters.elements());
        Span out = Span.writable(recv, way.parameters.elements());
        long count = Shapes.alike(in, out);
        return way.run(params -> Native.dtrain_gradients_submit(queue, name, in.address(), out.address(),
                count, in.dtype().number(), Op.number(op), params), send, recv);
    }

    /**
     * For a rank without more data: it contributes zeros until all ranks have joined. The result's peer is the
     * rank that joined last.
     *
     * @return the result, or the request of the operation (see R)
     */
    public R join() {
        return way.find(params -> Native.dtrain_gradients_join(queue, params, 0));
    }
}
