// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Starts operations. */
final class StartedWay extends Way<Request> {
    private final Completions completions;
    private final Room params;

    StartedWay(Completions completions, Handle owner, Parameters parameters) {
        super(owner, parameters);
        this.completions = completions;
        params = parameters.write(0, 0, completions.queue());
    }

    @Override
    Request run(Post post, Object... kept) {
        return run(post, null, kept);
    }

    @Override
    Request count(Post post, Room counted) {
        return run(post, counted, counted);
    }

    private Request run(Post post, Room counted, Object... kept) {
        owner.enter();
        try {
            Request request = new Request(owner, counted, kept);
            completions.watch(post.with(params.address()), request);
            return request;
        } finally {
            owner.leave();
        }
    }
}
