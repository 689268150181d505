// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * An ordered group of ranks. Its operations block; {@link #start()} has the same ones with requests,
 * {@link #prepare()} prepared ones, {@link #using} all of them with parameters. Any thread may call
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

    /** null for a rank that is not of the group. */
    static Communicator make(Context context, Handle.Call call) {
        Handle made = context.handle().make("communicator", call, Native::dtrain_comm_destroy);
        return made == null ? null : new Communicator(context, made);
    }

    /**
     * This process's number in the group.
     *
     * @return from 0
     */
    public int rank() {
        return rankOfGroup();
    }

    /**
     * How many ranks the group has.
     *
     * @return at least 1
     */
    public int size() {
        return sizeOfGroup();
    }

    /**
     * The same operations with parameters. What it returns is to be kept where it is used often.
     *
     * @param parameters read now
     * @return the operations
     */
    public BlockingCollectives using(Parameters parameters) {
        return new BlockingCollectives(context, handle, Parameters.copyOf(parameters), rank(), size());
    }

    /**
     * One communicator for each color, its ranks ordered by (key, rank). Collective.
     *
     * @param color 0 or more; less: this rank gets none
     * @param key for the order
     * @return that of this rank's color
     */
    public Optional<Communicator> split(int color, int key) {
        return Optional.ofNullable(made(comm -> Native.dtrain_comm_split(comm, color, key)));
    }

    /**
     * A communicator of these ranks in this order. Collective: all give the same list.
     *
     * @param ranks of this communicator
     * @return empty on the others
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
     * The same ranks, with an order of calls of its own. Collective.
     *
     * @return a new one
     */
    public Communicator duplicate() {
        return made(Native::dtrain_comm_duplicate);
    }

    /**
     * The ranks that are alive: the way on after a {@link PeerException}. All of them call it.
     *
     * @return a new one
     */
    public Communicator shrink() {
        return made(Native::dtrain_comm_shrink);
    }

    /**
     * Ends every operation, on all ranks, with an {@link AbortedException}.
     *
     * @param reason told there; may be null
     */
    public void abort(String reason) {
        handle.call(comm -> Native.dtrain_comm_abort(comm, reason));
    }

    /**
     * Why the communicator is broken.
     *
     * @return empty while it is not
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
     * A table of the job. Collective.
     *
     * @param name the same on all workers
     * @param settings the same on all workers
     * @return a new one
     */
    public Table table(String name, TableSettings settings) {
        Arguments.given(name, "name");
        return Table.create(context, handle, name, Arguments.given(settings, "settings"));
    }

    /**
     * A queue of named tensors that ranks submit in any order. Collective.
     *
     * @param settings how it works
     * @return a new one
     */
    public Gradients gradients(Gradients.Settings settings) {
        return Gradients.create(context, handle, settings);
    }

    /**
     * All-reduces of one vector with less on the wire. Collective.
     *
     * @param settings the same on all ranks
     * @return a new one
     */
    public Compressor compressor(Compressor.Settings settings) {
        return Compressor.create(context, handle, Arguments.given(settings, "settings"));
    }

    /**
     * A graph with weights of its own. Collective.
     *
     * @param kind the same on all ranks
     * @return a new one
     */
    public Graph graph(Graph.Kind kind) {
        return Graph.create(context, handle, Arguments.given(kind, "kind"));
    }

    /**
     * A graph of the program's own. Collective.
     *
     * @param settings as this rank sees it
     * @return a new one
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
     * Gives it back, with what was made with it: operations in flight end with a
     * {@link CanceledException}.
     *
     * @throws BusyException another thread is in a call of it; what was made with it may be closed
     *     already
     */
    @Override
    public void close() {
        handle.close();
    }

    private Communicator made(Handle.Call call) {
        return make(context, ofContext -> handle.call(call));
    }
}
