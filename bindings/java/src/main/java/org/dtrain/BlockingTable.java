// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A table's operations that return when they are done, or throw their error. */
public class BlockingTable extends TableOperations<Result> {
    private final Context context;
    private final Handle handle;
    private final Parameters parameters;
    private TableOperations<Request> started;

    BlockingTable(Context context, Handle handle, Parameters parameters, DType dtype, int dim) {
        super(new BlockingWay(context.abandoned(), handle, parameters), dtype, dim);
        this.context = context;
        this.handle = handle;
        this.parameters = parameters;
    }

    /**
     * The same operations, which start and return a request.
     *
     * @return the same object each time
     */
    public synchronized TableOperations<Request> start() {
        if (started == null) {
            started = new TableOperations<>(new StartedWay(context.completions(), handle, parameters),
                    dtype(), rowLength());
        }
        return started;
    }
}
