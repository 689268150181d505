// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** The library refuses an argument or option. */
public final class InvalidException extends DtrainException {
    private static final long serialVersionUID = 1;

    InvalidException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
