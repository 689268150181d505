// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** An argument or option that the library refuses. */
public final class InvalidException extends DtrainException {
    private static final long serialVersionUID = 1;

    InvalidException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
