// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.ArrayList;
import java.util.List;

/** Operations that nobody waits for any more: they and their buffers are kept until they finish. */
final class Abandoned {
    private record Operation(long request, Object[] kept) {
    }

    private final List<Operation> operations = new ArrayList<>();

    /** Asks for an early end, so that a receive takes no later message. */
    void add(long request, Object... kept) {
        NativeJNI.dtrain_request_cancel(request); // a collective refuses, and goes on
        synchronized (operations) {
            sweep();
            operations.add(new Operation(request, kept));
        }
    }

    /** Gives back those that have finished. */
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
