// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;
import java.nio.LongBuffer;

/**
 * Operations on a table's values. Dense tables: they apply to as many values as the buffer has, from
 * `first` on (by default 0). Sparse tables: to the rows of keys, any 64-bit numbers. Buffers, also
 * ByteBuffers, hold elements of the table's type.
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
     * The type of the table's values.
     *
     * @return the type
     */
    public DType dtype() {
        return dtype;
    }

    /**
     * Pushes values to the table's rule.
     *
     * @param values from the first element on
     * @return the result, or the request of the operation (see R)
     */
    public R push(Buffer values) {
        return push(values, 0);
    }

    /**
     * Pushes values to the table's rule.
     *
     * @param values for elements from `first` on
     * @param first element
     * @return the result, or the request of the operation (see R)
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
     * @return the result, or the request of the operation (see R)
     */
    public R pull(Buffer values) {
        return pull(values, 0);
    }

    /**
     * Reads values.
     *
     * @param values of elements from `first` on
     * @param first element
     * @return the result, or the request of the operation (see R)
     */
    public R pull(Buffer values, long first) {
        Span out = Span.writable(values, dtype);
        return way.find(params -> Native.dtrain_table_pull(table, first, out.count(), out.address(), params),
                values);
    }

    /**
     * Pushes and then pulls the same elements in one round trip. Under BSP this also ends the
     * worker's clock.
     *
     * @param pushed for elements from `first` on
     * @param pulled of the same; may be the same buffer
     * @param first element
     * @return the result, or the request of the operation (see R)
     */
    public R pushPull(Buffer pushed, Buffer pulled, long first) {
        Span in = Span.of(pushed, dtype);
        Span out = Span.writable(pulled, dtype);
        long count = Shapes.alike(in, out);
        return way.find(params -> Native.dtrain_table_push_pull(table, first, count, in.address(),
                out.address(), params), pushed, pulled);
    }

    /**
     * Pushes values and then pulls the same elements in place, in one round trip. Under BSP this also ends
     * the worker's clock.
     *
     * @param values from the first element on
     * @return the result, or the request of the operation (see R)
     */
    public R pushPull(Buffer values) {
        return pushPull(values, 0);
    }

    /**
     * Pushes values and then pulls the same elements in place, in one round trip. Under BSP this also ends
     * the worker's clock.
     *
     * @param values for elements from `first` on
     * @param first element
     * @return the result, or the request of the operation (see R)
     */
    public R pushPull(Buffer values, long first) {
        return pushPull(values, values, first);
    }

    /**
     * Overwrites values, whatever the rule and the clock.
     *
     * @param values from the first element on
     * @return the result, or the request of the operation (see R)
     */
    public R set(Buffer values) {
        return set(values, 0);
    }

    /**
     * Overwrites values, whatever the rule and the clock.
     *
     * @param values for elements from `first` on
     * @param first element
     * @return the result, or the request of the operation (see R)
     */
    public R set(Buffer values, long first) {
        Span in = Span.of(values, dtype);
        return way.find(params -> Native.dtrain_table_set(table, first, in.count(), in.address(), params),
                values);
    }

    /**
     * Pushes rows to the table's rule; creates missing rows.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return the result, or the request of the operation (see R)
     */
    public R pushRows(LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span in = Span.of(values, dtype);
        long count = Shapes.rows(of, in, dim);
        return way.find(params -> Native.dtrain_table_push_rows(table, of.address(), count, in.address(),
                params), keys, values);
    }

    /**
     * Reads rows; a key without a row has its initial values.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return the result, or the request of the operation (see R)
     */
    public R pullRows(LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span out = Span.writable(values, dtype);
        long count = Shapes.rows(of, out, dim);
        return way.find(params -> Native.dtrain_table_pull_rows(table, of.address(), count, out.address(),
                params), keys, values);
    }

    /**
     * Pushes and then pulls rows in one round trip. Under BSP this also ends the worker's clock.
     *
     * @param keys of the rows
     * @param pushed a row for each key
     * @param pulled the same; may be the same buffer
     * @return the result, or the request of the operation (see R)
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
     * Pushes rows and then pulls them in place, in one round trip. Under BSP this also ends the worker's
     * clock.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return the result, or the request of the operation (see R)
     */
    public R pushPullRows(LongBuffer keys, Buffer values) {
        return pushPullRows(keys, values, values);
    }

    /**
     * Overwrites rows, whatever the rule and the clock.
     *
     * @param keys of the rows
     * @param values a row for each key
     * @return the result, or the request of the operation (see R)
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
     * @return the result, or the request of the operation (see R)
     */
    public R eraseRows(LongBuffer keys) {
        Span of = Span.of(keys, DType.U64);
        return way.run(params -> Native.dtrain_table_erase_rows(table, of.address(), of.count(), params),
                keys);
    }

    /**
     * Counts the rows on all servers: {@link Result#count}.
     *
     * @return the result, or the request of the operation (see R)
     */
    public R countRows() {
        Room counted = new Room(8);
        return way.count(params -> Native.dtrain_table_count_rows(table, counted.address(), params), counted);
    }

    /**
     * Ends this worker's clock; its pushes so far belong to that clock.
     *
     * @return the result, or the request of the operation (see R)
     */
    public R clock() {
        return way.run(params -> Native.dtrain_table_clock(table, params));
    }

    /**
     * Replaces the learning rate.
     *
     * @param rate the new rate
     * @return the result, or the request of the operation (see R)
     */
    public R setRate(double rate) {
        return way.run(params -> Native.dtrain_table_set_rate(table, rate, params));
    }

    /**
     * Says how often the table was updated before: the next update is number count + 1.
     *
     * @param count the number of updates, at most 2^53
     * @return the result, or the request of the operation (see R)
     */
    public R setUpdates(long count) {
        return way.run(params -> Native.dtrain_table_set_updates(table, count, params));
    }

    /**
     * Reads numbers of a state array of the rule.
     *
     * @param state one of {@link Table#states}
     * @param values of its type
     * @param first number
     * @return the result, or the request of the operation (see R)
     */
    public R pullState(Table.State state, Buffer values, long first) {
        Span out = Span.writable(values, Arguments.given(state, "state").dtype());
        return way.find(params -> Native.dtrain_table_pull_state(table, state.index(), first, out.count(),
                out.address(), params), values);
    }

    /**
     * Overwrites numbers of a state array of the rule.
     *
     * @param state one of {@link Table#states}
     * @param values of its type
     * @param first number
     * @return the result, or the request of the operation (see R)
     */
    public R setState(Table.State state, Buffer values, long first) {
        Span in = Span.of(values, Arguments.given(state, "state").dtype());
        return way.find(params -> Native.dtrain_table_set_state(table, state.index(), first, in.count(),
                in.address(), params), values);
    }

    /**
     * Reads the state of rows.
     *
     * @param state one of {@link Table#states}
     * @param keys of the rows
     * @param values of its type, as many for each key
     * @return the result, or the request of the operation (see R)
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
     * @param state one of {@link Table#states}
     * @param keys of the rows
     * @param values of its type, as many for each key
     * @return the result, or the request of the operation (see R)
     */
    public R setStateRows(Table.State state, LongBuffer keys, Buffer values) {
        Span of = Span.of(keys, DType.U64);
        Span in = Span.of(values, Arguments.given(state, "state").dtype());
        long count = Shapes.rows(of, in, state.count());
        return way.find(params -> Native.dtrain_table_set_state_rows(table, state.index(), of.address(),
                count, in.address(), params), keys, values);
    }

    /**
     * Declares the table initialized; usually one worker does.
     *
     * @return the result, or the request of the operation (see R)
     */
    public R setReady() {
        return way.run(params -> Native.dtrain_table_set_ready(table, params));
    }

    /**
     * Waits until a worker has called {@link #setReady}.
     *
     * @return the result, or the request of the operation (see R)
     */
    public R waitReady() {
        return way.run(params -> Native.dtrain_table_wait_ready(table, params));
    }
}
