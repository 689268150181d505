// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** The group continued without this rank. */
public final class FencedException extends DtrainException {
    private static final long serialVersionUID = 1;

    FencedException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
