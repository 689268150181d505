// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * The thread was interrupted while it waited; its interrupted status is set again. A collective continues
 * without the thread; a receive is canceled.
 */
public final class InterruptedWaitException extends DtrainException {
    private static final long serialVersionUID = 1;

    InterruptedWaitException() {
        super(Status.CANCELED, "the thread was interrupted while it waited", -1);
    }
}
