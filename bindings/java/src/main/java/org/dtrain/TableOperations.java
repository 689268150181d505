// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.nio.LongBuffer;

/**
 * Operations on a table's values. Of a dense one they are those from `first` on (not said: 0), as many
 * as the buffer has; rows of a sparse one are given by keys, any 64-bit numbers. Buffers hold elements
 * of the table's type, a ByteBuffer, too.
 *
 * @param <R> what calls return: a {@link Result} when they are done, or a {@link Request}
 */
public class TableOperations<R> {
    private final Way<R> way;
    private final long table;
    private final DType dtype;
    private final int dim;

    TableOperations(Way<R> way, DType dtype, int dim) {
        this.way = way;
        this.table = way.owner.address;
        this.dtype = dtype;
        this.dim = dim;
    }

    int rowLength() {
        return dim;
    }

    /**
     * The type of its values.
     *
     * @return as it was made
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Hands values to the table's rule.
     *
     * @param values from the first element on
     * @return as the way of the call has it
     */
    public R push(Buffer values) {
        return push(values, 0);
    }

    /**
     * Hands values to the table's rule.
     *
     * @param values for elements from `first` on
     * @param first element
     * @return as the way of the call has it
     */
    public R push(Buffer values, long first) {
        Span in = Span.of(values, dtype);
        return way.find(params -> Native.dtrain_table_push(table, first, in.count(), in.address(), params),
                values);
    }

    /**
     * Reads values.
     *
     * @param values from the first element on
     * @return as the way of the call has it
     */
    public R pull(Buffer values) {
        return pull(values, 0);
    }

    /**
     * Reads values.
     *
     * @param values of elements from `first` on
     * @param first element
     * @return as the way of the call has it
     */
    public R pull(Buffer values, long first) {
        Span out = Span.writable(values, dtype);
        return way.find(params -> Native.dtrain_table_pull(table, first, out.count(), out.address(), params),
                values);
    }

    /**
     * Pushes and then pulls the same elements in one round trip. Under BSP it clocks the worker, too.
     *
     * @param pushed for elements from `first` on
     * @param pulled of the same; may be the same buffer
     * @param first element
     * @return as the way of the call has it
     */
    public R pushPull(Buffer pushed, Buffer pulled, long first) {
        Span in = Span.of(pushed, dtype);
        Span out = Span.writable(pulled, dtype);
        long count = Shapes.alike(in, out);
        return way.find(params -> Native.dtrain_table_push_pull(table, first, count, in.address(),
                out.address(), params), pushed, pulled);
    }

    /**
     * Pushes values and then pulls the same elements to where they were, in one round trip. Under BSP it
     * clocks the worker, too.
     *
     * @param values from the first element on
     * @return as the way of the call has it
     */
    public R pushPull(Buffer values) {
        return pushPull(values, 0);
    }

    /**
     * Pushes values and then pulls the same elements to where they were, in one round trip. Under BSP it
     * clocks the worker, too.
     *
     * @param values for elements from `first` on
     * @param first element
     * @return as the way of the call has it
     */
    public R pushPull(Buffer values, long first) {
        return pushPull(values, values, first);
    }

    /**
     * Overwrites values, whatever the rule and the clock.
     *
     * @param values from the first element on
     * @return as the way of the call has it
     */
    public R set(Buffer values) {
        return set(values, 0);
    }

    /**
     * Overwrites values, whatever the rule and the clock.
     *
     * @param values for elements from `first` on
     * @param first element
     * @return as the way of the call has it
     */
    public R set(Buffer values, long first) {
        Span in = Span.of(values, dtype);
        return way.find(params -> Native.dtrain_table_set(table, first, in.count(), in.address(), params),
                values);
    }

    /**
     * Hands rows to the table's rule; makes those that are not there.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return as the way of the call has it
     */
    public R pushRows(LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span in = Span.of(values, dtype);
        long count = Shapes.rows(of, in, dim);
        return way.find(params -> Native.dtrain_table_push_rows(table, of.address(), count, in.address(),
                params), keys, values);
    }

    /**
     * Reads rows; of a key without one its initial values.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return as the way of the call has it
     */
    public R pullRows(LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span out = Span.writable(values, dtype);
        long count = Shapes.rows(of, out, dim);
        return way.find(params -> Native.dtrain_table_pull_rows(table, of.address(), count, out.address(),
                params), keys, values);
    }

    /**
     * Pushes and then pulls rows in one round trip. Under BSP it clocks the worker, too.
     *
     * @param keys of the rows
     * @param pushed a row for each key
     * @param pulled the same; may be the same buffer
     * @return as the way of the call has it
     */
    public R pushPullRows(LongBuffer keys, Buffer pushed, Buffer pulled) {
        Span of = Span.of(keys, DType.U64);
        Span in = Span.of(pushed, dtype);
        Span out = Span.writable(pulled, dtype);
        Shapes.alike(in, out);
        long count = Shapes.rows(of, in, dim);
        return way.find(params -> Native.dtrain_table_push_pull_rows(table, of.address(), count,
                in.address(), out.address(), params), keys, pushed, pulled);
    }

    /**
     * Pushes rows and then pulls them to where they were, in one round trip. Under BSP it clocks the
     * worker, too.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return as the way of the call has it
     */
    public R pushPullRows(LongBuffer keys, Buffer values) {
        return pushPullRows(keys, values, values);
    }

    /**
     * Overwrites rows, whatever the rule and the clock.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return as the way of the call has it
     */
    public R setRows(LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span in = Span.of(values, dtype);
        long count = Shapes.rows(of, in, dim);
        return way.find(params -> Native.dtrain_table_set_rows(table, of.address(), count, in.address(),
                params), keys, values);
    }

    /**
     * Drops rows and their state.
     *
     * @param keys of the rows
     * @return as the way of the call has it
     */
    public R eraseRows(LongBuffer keys) {
        Span of = Span.of(keys, DType.U64);
        return way.run(params -> Native.dtrain_table_erase_rows(table, of.address(), of.count(), params),
                keys);
    }

    /**
     * Counts the rows on all servers: {@link Result#count}.
     *
     * @return as the way of the call has it
     */
    public R countRows() {
        Room counted = new Room(8);
        return way.count(params -> Native.dtrain_table_count_rows(table, counted.address(), params), counted);
    }

    /**
     * Ends this worker's clock: its pushes so far belong to it.
     *
     * @return as the way of the call has it
     */
    public R clock() {
        return way.run(params -> Native.dtrain_table_clock(table, params));
    }

    /**
     * Replaces the learning rate.
     *
     * @param rate from now on
     * @return as the way of the call has it
     */
    public R setRate(double rate) {
        return way.run(params -> Native.dtrain_table_set_rate(table, rate, params));
    }

    /**
     * Reads numbers of a state array of the rule.
     *
     * @param state which, of {@link Table#states}
     * @param values of its type
     * @param first number
     * @return as the way of the call has it
     */
    public R pullState(Table.State state, Buffer values, long first) {
        Span out = Span.writable(values, Arguments.given(state, "state").dtype());
        return way.find(params -> Native.dtrain_table_pull_state(table, state.index(), first, out.count(),
                out.address(), params), values);
    }

    /**
     * Overwrites numbers of a state array of the rule.
     *
     * @param state which, of {@link Table#states}
     * @param values of its type
     * @param first number
     * @return as the way of the call has it
     */
    public R setState(Table.State state, Buffer values, long first) {
        Span in = Span.of(values, Arguments.given(state, "state").dtype());
        return way.find(params -> Native.dtrain_table_set_state(table, state.index(), first, in.count(),
                in.address(), params), values);
    }

    /**
     * Reads the state of rows.
     *
     * @param state which, of {@link Table#states}
     * @param keys of the rows
     * @param values of its type, as many for each key as it has
     * @return as the way of the call has it
     */
    public R pullStateRows(Table.State state, LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span out = Span.writable(values, Arguments.given(state, "state").dtype());
        long count = Shapes.rows(of, out, state.count());
        return way.find(params -> Native.dtrain_table_pull_state_rows(table, state.index(), of.address(),
                count, out.address(), params), keys, values);
    }

    /**
     * Overwrites the state of rows.
     *
     * @param state which, of {@link Table#states}
     * @param keys of the rows
     * @param values of its type, as many for each key as it has
     * @return as the way of the call has it
     */
    public R setStateRows(Table.State state, LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span in = Span.of(values, Arguments.given(state, "state").dtype());
        long count = Shapes.rows(of, in, state.count());
        return way.find(params -> Native.dtrain_table_set_state_rows(table, state.index(), of.address(),
                count, in.address(), params), keys, values);
    }

    /**
     * Says that the table is initialised; usually one worker does.
     *
     * @return as the way of the call has it
     */
    public R setReady() {
        return way.run(params -> Native.dtrain_table_set_ready(table, params));
    }

    /**
     * Waits until a worker has said so.
     *
     * @return as the way of the call has it
     */
    public R waitReady() {
        return way.run(params -> Native.dtrain_table_wait_ready(table, params));
    }
}
