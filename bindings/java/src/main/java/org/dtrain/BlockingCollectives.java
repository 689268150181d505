// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Collectives that return when they are done, or throw their error. */
public class BlockingCollectives extends Collectives<Result> {
    private final Context context;
    private final Handle handle;
    private final Parameters parameters;
    private Collectives<Request> started;
    private Collectives<Persistent> prepared;

    BlockingCollectives(Context context, Handle handle, Parameters parameters, int rank, int size) {
        super(new BlockingWay(context.abandoned(), handle, parameters), rank, size);
        this.context = context;
        this.handle = handle;
        this.parameters = parameters;
    }

    /**
     * The same operations, which start and return a request: {@code Request request = world.start().allreduce(x)}.
     *
     * @return the same object each time
     */
    public synchronized Collectives<Request> start() {
        if (started == null) {
            started = new Collectives<>(new StartedWay(context.completions(), handle, parameters),
                    rankOfGroup(), sizeOfGroup());
        }
        return started;
    }

    /**
     * The same operations, prepared for many starts. For the order of calls only the starts
     * count.
     *
     * @return the same object each time
     */
    public synchronized Collectives<Persistent> prepare() {
        if (prepared == null) {
            prepared = new Collectives<>(new PreparedWay(handle, parameters), rankOfGroup(),
                    sizeOfGroup());
        }
        return prepared;
    }
}
