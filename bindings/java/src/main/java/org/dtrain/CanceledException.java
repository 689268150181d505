// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Ended before it was done: canceled, or its communicator was closed. */
public final class CanceledException extends DtrainException {
    private static final long serialVersionUID = 1;

    CanceledException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
