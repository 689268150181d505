// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Prepares operations. */
final class PreparedWay extends Way<Persistent> {
    private final Room params;

    PreparedWay(Handle owner, Parameters parameters) {
        super(owner, parameters);
        params = parameters.write(Parameters.PERSISTENT, 0, 0);
    }

    @Override
    Persistent run(Post post, Object... kept) {
        owner.enter();
        try {
            return new Persistent(owner, post.with(params.address()), kept);
        } finally {
            owner.leave();
        }
    }

    @Override
    Persistent count(Post post, Room counted) {
        return run(post, counted);
    }
}
