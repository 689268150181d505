// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A peer failed; {@link #rank()} says which. Call {@code Communicator.shrink()} to continue. */
public final class PeerException extends DtrainException {
    private static final long serialVersionUID = 1;

    PeerException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
