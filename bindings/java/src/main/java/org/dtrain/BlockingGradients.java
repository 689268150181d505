// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A queue's operations that return when they are done, or throw what they failed with. */
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
     * The same operations, begun only, which is how tensors are submitted while the program computes on.
     *
     * @return the same each time
     */
    public synchronized GradientOperations<Request> start() {
        if (started == null) {
            started = new GradientOperations<>(new StartedWay(context.completions(), handle, parameters));
        }
        return started;
    }
}
