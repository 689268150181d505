// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** The communicator was aborted. */
public final class AbortedException extends DtrainException {
    private static final long serialVersionUID = 1;

    AbortedException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
