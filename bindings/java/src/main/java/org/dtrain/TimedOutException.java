// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Not finished in time. */
public final class TimedOutException extends DtrainException {
    private static final long serialVersionUID = 1;

    TimedOutException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
