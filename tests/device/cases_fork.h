// A child made by fork() can destroy what it has inherited, and is refused the rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rig.h"
#include "transport/child.h"

namespace dtrain::test {

inline void children_are_refused(void **) {
    Rig rig;
    OnDevice memory(rig, 1000);
    memory.write(Bytes(1000, 9).data());
    usleep(100'000); // the driver's own threads come to rest: in the child their locks would stay
                     // taken
    {
        Child child([&](int) {
            dtrain_dv_mem_t *mem = nullptr;
            dtrain_dv_queue_t *queue = nullptr;
            rig.refused(ops().alloc(rig.dev, 100, 0, &mem), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().pin(rig.dev, rig.words, 100, &mem), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().queue_own(rig.dev, 0, &queue), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().queue_adopt(rig.dev, nullptr, &queue), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().prepare(rig.dev, DTRAIN_F32), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().fill(rig.queue, memory.address, 1, 1000), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().copy(rig.queue, memory.address, memory.address, 0), DTRAIN_ERR_STATE,
                        "fork");
            rig.refused(ops().signal(rig.queue, rig.word_page, 0, 99), DTRAIN_ERR_STATE, "fork");
            rig.refused(ops().queue_done(rig.queue), DTRAIN_ERR_STATE, "fork");
            ops().release(memory.mem);
            ops().release(rig.word_page);
            ops().queue_free(rig.queue);
            ops().close(rig.dev);
        });
        child.join();
    }
    assert_true(memory.read() == Bytes(1000, 9)); // the parent's is as it was
}

inline constexpr CMUnitTest fork_cases[] = {cmocka_unit_test(children_are_refused)};

} // namespace dtrain::test
