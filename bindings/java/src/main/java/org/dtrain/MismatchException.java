// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Ranks made different calls. */
public final class MismatchException extends DtrainException {
    private static final long serialVersionUID = 1;

    MismatchException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
