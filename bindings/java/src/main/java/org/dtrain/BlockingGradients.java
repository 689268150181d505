// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A queue's operations that return when they are done, or throw their error. */
public class BlockingGradients extends GradientOperations<Result> {
    private final Context context;
    private final Handle handle;
    private final Parameters parameters;
    private GradientOperations<Request> started;

    BlockingGradients(Context context, Handle handle, Parameters parameters) {
        super(new BlockingWay(context.abandoned(), handle, parameters));
        this.context = context;
        this.handle = handle;
        this.parameters = parameters;
    }

    /**
     * The same operations, which start and return a request, so that the program can compute meanwhile.
     *
     * @return the same object each time
     */
    public synchronized GradientOperations<Request> start() {
        if (started == null) {
            started = new GradientOperations<>(new StartedWay(context.completions(), handle, parameters));
        }
        return started;
    }
}
