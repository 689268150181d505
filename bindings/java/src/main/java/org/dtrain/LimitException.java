// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A limit is exceeded, for example of a server's memory. */
public final class LimitException extends DtrainException {
    private static final long serialVersionUID = 1;

    LimitException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
