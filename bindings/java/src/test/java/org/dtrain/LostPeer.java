// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A rank that is gone after the first barrier. */
final class LostPeer {
    private LostPeer() {
    }

    public static void main(String[] arguments) {
        Context.create().join(Join.at(arguments[0]).size(2).rank(1)).barrier();
        Runtime.getRuntime().halt(0);
    }
}
