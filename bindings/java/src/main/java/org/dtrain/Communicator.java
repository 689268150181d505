// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * An ordered group of ranks. Its operations block; {@link #start()} offers them with requests,
 * {@link #prepare()} prepared for many starts, {@link #using} with parameters. Any thread may call
 * them.
 */
public final class Communicator extends BlockingCollectives implements AutoCloseable {
    private final Context context;
    private final Handle handle;

    private Communicator(Context context, Handle handle) {
        super(context, handle, new Parameters(), Native.dtrain_comm_rank(handle.address),
                Native.dtrain_comm_size(handle.address));
        this.context = context;
        this.handle = handle;
    }

    /** Returns null for a rank that is not in the group. */
    static Communicator make(Context context, Handle.Call call) {
        Handle made = context.handle().make("communicator", call, Native::dtrain_comm_destroy);
        return made == null ? null : new Communicator(context, made);
    }

    /**
     * This process's rank in the group.
     *
     * @return from 0
     */
    public int rank() {
        return rankOfGroup();
    }

    /**
     * The number of ranks in the group.
     *
     * @return at least 1
     */
    public int size() {
        return sizeOfGroup();
    }

    /**
     * The same operations with parameters. Keep the returned object if you use it often.
     *
     * @param parameters copied during this call
     * @return the operations
     */
    public BlockingCollectives using(Parameters parameters) {
        return new BlockingCollectives(context, handle, Parameters.copyOf(parameters), rank(), size());
    }

    /**
     * Creates one communicator per color, its ranks ordered by (key, rank). Collective.
     *
     * @param color 0 or more; with less this rank gets no communicator
     * @param key for the order
     * @return the communicator of this rank's color
     */
    public Optional<Communicator> split(int color, int key) {
        return Optional.ofNullable(made(comm -> Native.dtrain_comm_split(comm, color, key)));
    }

    /**
     * Creates a communicator of these ranks in this order. Collective: all ranks pass the same list.
     *
     * @param ranks of this communicator
     * @return empty on other ranks
     */
    public Optional<Communicator> subset(int... ranks) {
        Room list = Room.of(Arguments.given(ranks, "ranks"));
        try {
            return Optional.ofNullable(made(comm -> Native.dtrain_comm_subset(comm, list.address(),
                    ranks.length)));
        } finally {
            list.keep();
        }
    }

    /**
     * Creates a communicator of these ranks in this order, by these ranks alone: each of them passes the
     * same list and tag. Other ranks take no part. Works when this communicator is broken, too.
     *
     * @param ranks of this communicator
     * @param tag tells groups apart that the same ranks create at the same time
     * @return a new object
     */
    public Communicator createGroup(int[] ranks, int tag) {
        return createGroup(ranks, tag, 0);
    }

    /**
     * The same with a time limit.
     *
     * @param ranks of this communicator
     * @param tag tells groups apart that the same ranks create at the same time
     * @param timeout for all of it
     * @return a new object
     */
    public Communicator createGroup(int[] ranks, int tag, Duration timeout) {
        return createGroup(ranks, tag, Durations.ofTimeout(timeout, "timeout"));
    }

    private Communicator createGroup(int[] ranks, int tag, long timeoutNs) {
        Room list = Room.of(Arguments.given(ranks, "ranks"));
        try {
            return made(comm -> Native.dtrain_comm_create_group(comm, list.address(), ranks.length, tag,
                    timeoutNs));
        } finally {
            list.keep();
        }
    }

    /**
     * Creates a communicator of the same ranks, with a separate order of calls. Collective.
     *
     * @return a new object
     */
    public Communicator duplicate() {
        return made(Native::dtrain_comm_duplicate);
    }

    /**
     * Creates a communicator of the ranks that are alive, to continue after a {@link PeerException}. All
     * of them call it.
     *
     * @return a new object
     */
    public Communicator shrink() {
        return made(Native::dtrain_comm_shrink);
    }

    /**
     * The next generation of an elastic job: the workers that live, and newcomers. All living workers
     * call it.
     *
     * @param how sizes, and whether this worker leaves
     * @return empty for a worker that leaves
     */
    public Optional<Communicator> reform(Reform how) {
        Room room = Arguments.given(how, "how").params();
        try {
            return Optional.ofNullable(made(comm -> Native.dtrain_comm_reform(comm, room.address())));
        } finally {
            room.keep();
        }
    }

    /**
     * How many processes wait to be taken in by {@link #reform}.
     *
     * @return 0 or more
     */
    public int newcomers() {
        return (int) handle.call(Native::dtrain_comm_newcomers);
    }

    /**
     * How the reform that made this communicator has changed the job.
     *
     * @return a JSON text; "{}" if no reform made it
     */
    public String changes() {
        return Text.read((address, bytes) ->
                handle.call(comm -> Native.dtrain_comm_changes(comm, address, bytes)));
    }

    /**
     * Ends every operation on all ranks with an {@link AbortedException}.
     *
     * @param reason its text; may be null
     */
    public void abort(String reason) {
        handle.call(comm -> Native.dtrain_comm_abort(comm, reason));
    }

    /**
     * The error that broke the communicator.
     *
     * @return empty while it is intact
     */
    public Optional<DtrainException> error() {
        try {
            handle.call(Native::dtrain_comm_status);
            return Optional.empty();
        } catch (DtrainException error) {
            return Optional.of(error);
        }
    }

    /**
     * The ranks that failed.
     *
     * @return in ascending order
     */
    public List<Integer> failed() {
        int[] ranks = new int[size()];
        Room room = Room.of(ranks);
        int count = (int) handle.call(comm -> Native.dtrain_comm_failed(comm, room.address(), size()));
        room.bytes().asIntBuffer().get(ranks);
        return Arrays.stream(ranks, 0, count).boxed().toList();
    }

    /**
     * Creates a table of the job. Collective.
     *
     * @param name the same on all workers
     * @param settings the same on all workers
     * @return a new object
     */
    public Table table(String name, TableSettings settings) {
        Arguments.given(name, "name");
        return Table.create(context, handle, name, Arguments.given(settings, "settings"));
    }

    /**
     * Creates a queue of named tensors that ranks submit in any order. Collective.
     *
     * @param settings how it works
     * @return a new object
     */
    public Gradients gradients(Gradients.Settings settings) {
        return Gradients.create(context, handle, settings);
    }

    /**
     * Creates a compressor for all-reduces of one vector with fewer bytes sent. Collective.
     *
     * @param settings the same on all ranks
     * @return a new object
     */
    public Compressor compressor(Compressor.Settings settings) {
        return Compressor.create(context, handle, Arguments.given(settings, "settings"));
    }

    /**
     * Creates a graph of a predefined kind. Collective.
     *
     * @param kind the same on all ranks
     * @return a new object
     */
    public Graph graph(Graph.Kind kind) {
        return Graph.create(context, handle, Arguments.given(kind, "kind"));
    }

    /**
     * Creates a graph that the program defines. Collective.
     *
     * @param settings this rank's part of the graph
     * @return a new object
     */
    public Graph graph(Graph.Settings settings) {
        return Graph.create(context, handle, Arguments.given(settings, "settings"));
    }

    /**
     * Measures the network between the ranks, for the option tuning.file. Collective.
     *
     * @param path of the file, which rank 0 writes
     */
    public void tune(String path) {
        Arguments.given(path, "path");
        handle.call(comm -> Native.dtrain_comm_tune(comm, path));
    }

    /**
     * Whether it is closed.
     *
     * @return true if so
     */
    public boolean isClosed() {
        return handle.isClosed();
    }

    /**
     * Closes it and all objects that were made with it. Operations in flight end with a
     * {@link CanceledException}.
     *
     * @throws BusyException another thread is in a call of it; objects that were made with it may be
     *     closed already
     */
    @Override
    public void close() {
        handle.close();
    }

    private Communicator made(Handle.Call call) {
        return make(context, ofContext -> handle.call(call));
    }
}
