// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A graph's operations that return when they are done, or throw their error. */
public class BlockingGraph extends GraphOperations<Result> {
    private final Context context;
    private final Handle handle;
    private final Parameters parameters;
    private GraphOperations<Request> started;
    private GraphOperations<Persistent> prepared;

    BlockingGraph(Context context, Handle handle, Parameters parameters, int in, int out) {
        super(new BlockingWay(context.abandoned(), handle, parameters), in, out);
        this.context = context;
        this.handle = handle;
        this.parameters = parameters;
    }

    /**
     * The same operations, which start and return a request.
     *
     * @return the same object each time
     */
    public synchronized GraphOperations<Request> start() {
        if (started == null) {
            started = new GraphOperations<>(new StartedWay(context.completions(), handle, parameters),
                    incoming(), outgoing());
        }
        return started;
    }

    /**
     * The same operations, prepared for many starts.
     *
     * @return the same object each time
     */
    public synchronized GraphOperations<Persistent> prepare() {
        if (prepared == null) {
            prepared = new GraphOperations<>(new PreparedWay(handle, parameters), incoming(), outgoing());
        }
        return prepared;
    }
}
