// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * An array on the servers, or on the workers themselves: dense, or rows by keys. Made by
 * {@link Communicator#table}. {@link #start()} offers the operations with requests, {@link #using} with
 * parameters.
 */
public final class Table extends BlockingTable implements AutoCloseable {
    /**
     * A state array of the rule.
     *
     * @param index its number
     * @param name for example "momentum"
     * @param dtype of its numbers
     * @param count of its numbers; in a sparse table per row
     */
    public record State(int index, String name, DType dtype, long count) {
    }

    /**
     * What a server holds of the table.
     *
     * @param rank of the worker that is this server; -1: a dedicated server
     * @param elements of a dense table that it holds
     * @param ranges that these elements form
     * @param share of all elements, or of all keys
     */
    public record Share(int rank, long elements, long ranges, double share) {
    }

    private final Context context;
    private final Handle comm;
    private final Handle handle;

    private Table(Context context, Handle comm, Handle handle, TableSettings settings) {
        super(context, handle, new Parameters(), settings.dtype(), settings.dim());
        this.context = context;
        this.comm = comm;
        this.handle = handle;
    }

    static Table create(Context context, Handle comm, String name, TableSettings settings) {
        Handle handle = comm.make("table", of -> settings.create(of, name), Native::dtrain_table_destroy);
        return new Table(context, comm, handle, settings);
    }

    /**
     * The same operations with parameters. Keep the returned object if you use it often.
     *
     * @param parameters copied during this call
     * @return the operations
     */
    public BlockingTable using(Parameters parameters) {
        return new BlockingTable(context, handle, Parameters.copyOf(parameters), dtype(), rowLength());
    }

    /**
     * Changes consistency, staleness, quorum and reproducible. Collective.
     *
     * @param settings only these four are read
     */
    public void setConsistency(TableSettings settings) {
        Arguments.given(settings, "settings");
        List<Room> kept = new ArrayList<>();
        Room room = settings.write(kept);
        comm.call(of -> handle.call(table ->
                Native.dtrain_table_set_consistency(of, table, room.address(), 0)));
        kept.forEach(Room::keep);
    }

    /**
     * The rule's state arrays.
     *
     * @return by their numbers
     */
    public List<State> states() {
        List<State> found = new ArrayList<>();
        Room out = Room.of(0, 0, 0L);
        long at = out.address();
        while (handle.call(table -> listed(
                NativeJNI.dtrain_table_describe_state(table, found.size(), at, at + 8, at + 16))) != 0) {
            found.add(new State(found.size(), Native.text_at(out.bytes().getLong(0)),
                    DType.of(out.bytes().getInt(8)), out.bytes().getLong(16)));
        }
        return found;
    }

    /**
     * The servers that hold these elements, or keys.
     *
     * @param items elements or keys
     * @return their servers' numbers
     */
    public int[] locate(long... items) {
        int[] servers = new int[Arguments.given(items, "items").length];
        Room wanted = Room.of(items);
        Room found = Room.of(servers);
        handle.call(table -> Native.dtrain_table_locate(table, wanted.address(), items.length,
                found.address()));
        found.bytes().asIntBuffer().get(servers);
        wanted.keep();
        return servers;
    }

    /**
     * What each server holds of the table.
     *
     * @return by their numbers
     */
    public List<Share> servers() {
        List<Share> found = new ArrayList<>();
        Room room = new Room(TableServerParams.bytes());
        TableServerParams server = new TableServerParams(room);
        server.prepare();
        while (handle.call(table -> listed(
                NativeJNI.dtrain_table_describe_server(table, found.size(), room.address()))) != 0) {
            found.add(new Share(server.getRank(), server.getElements(), server.getRanges(),
                    server.getShare()));
        }
        room.keep();
        return found;
    }

    /**
     * Counts of this worker's requests to a server.
     *
     * @param server its number; -1: all
     * @return counts since the table was created
     */
    public TableStats stats(int server) {
        Room room = new Room(TableStatsParams.bytes());
        new TableStatsParams(room).prepare();
        handle.call(table -> Native.dtrain_stats_table(table, server, room.address()));
        return TableStats.of(room);
    }

    /**
     * The step of the checkpoint that the table was restored from (option checkpoint.restore).
     *
     * @return empty if it was not restored
     */
    public OptionalLong restored() {
        return step(Native::dtrain_table_restored);
    }

    /**
     * The step of the newest complete checkpoint that has the table.
     *
     * @return empty if there is none
     */
    public OptionalLong newestCheckpoint() {
        return step(Native::dtrain_checkpoint_newest);
    }

    /** Frees the table; the servers drop it when the last worker has closed it. */
    @Override
    public void close() {
        handle.close();
    }

    Handle handle() {
        return handle;
    }

    private interface Step {
        long write(long table, long address);
    }

    private OptionalLong step(Step call) {
        Room step = new Room(8);
        try {
            handle.call(table -> call.write(table, step.address()));
            return OptionalLong.of(step.bytes().getLong(0));
        } catch (NotFoundException none) {
            return OptionalLong.empty();
        }
    }

    /** Returns 1 for an item, 0 after the last. */
    private static long listed(long status) {
        return status == Status.NOT_FOUND.number() ? 0 : Failures.check(status) + 1;
    }
}
