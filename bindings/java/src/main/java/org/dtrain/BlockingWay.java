// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.ref.Reference;

/** Runs operations and waits for them. */
final class BlockingWay extends Way<Result> {
    private final Abandoned abandoned;
    private final Room quick;
    private final Room wanted;

    BlockingWay(Abandoned abandoned, Handle owner, Parameters parameters) {
        super(owner, parameters);
        this.abandoned = abandoned;
        quick = parameters.write(Parameters.AWAITED, 0, 0);
        wanted = parameters.write(Parameters.AWAITED, 1, 0); // the tag asks for the result: calls.h
    }

    @Override
    Result run(Post post, Object... kept) {
        return run(quick, post, kept);
    }

    @Override
    Result find(Post post, Object... kept) {
        return run(wanted, post, kept);
    }

    @Override
    Result count(Post post, Room counted) {
        return find(post, counted).counted(counted);
    }

    private Result run(Room params, Post post, Object[] kept) {
        owner.enter();
        try {
            long request = post.with(params.address());
            return request == 0 ? Result.DONE : finish(request, kept);
        } finally {
            owner.leave();
            Reference.reachabilityFence(kept);
            Reference.reachabilityFence(params);
        }
    }

    private Result finish(long request, Object[] kept) {
        Outcome outcome = null;
        try {
            Outcome.await(request, -1);
            outcome = Outcome.of(request);
            return outcome.get();
        } finally {
            if (outcome != null) {
                Native.dtrain_request_free(request);
            } else {
                abandoned.add(request, kept);
            }
        }
    }
}
