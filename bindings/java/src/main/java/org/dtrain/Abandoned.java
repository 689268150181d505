// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.ArrayList;
import java.util.List;

/** Keeps operations whose wait has ended early, with their buffers, until they finish. */
final class Abandoned {
    private record Operation(long request, Object[] kept) {
    }

    private final List<Operation> operations = new ArrayList<>();

    /** Adds an operation and asks it to end, so that a receive takes no later message. */
    void add(long request, Object... kept) {
        NativeJNI.dtrain_request_cancel(request); // a collective refuses and continues
        synchronized (operations) {
            sweep();
            operations.add(new Operation(request, kept));
        }
    }

    /** Frees the operations that have finished. */
    void sweep() {
        synchronized (operations) {
            operations.removeIf(operation -> {
                boolean finished = Outcome.finished(operation.request);
                if (finished) {
                    Native.dtrain_request_free(operation.request);
                }
                return finished;
            });
        }
    }
}
