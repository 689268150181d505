// SPDX-License-Identifier: Apache-2.0
#include "acts.h"

#include "basic_calls.h"
#include "message_calls.h"
#include "server_calls.h"
#include "table_calls.h"
#include "uneven_calls.h"

namespace dtrain::simulator {
namespace {

using In = const Here &;
using By = const Drawn &;
using enum Act::Needs;

// Those after which a rank may be ahead of others that still need it end with a barrier.
constexpr Act acts[] = {
    {"allreduce", nothing, [](In here, By by) { return sum(here, by.count); }},
    {"several", nothing, [](In here, By by) { return sum_several(here, by.count); }},
    {"barrier", nothing, [](In here, By) { return here.barrier(); }},
    {"broadcast", nothing, [](In here, By by) { return broadcast(here, by.count, by.other); }},
    {"allgather", nothing, [](In here, By by) { return gather_all(here, by.count); }},
    {"alltoall", nothing, [](In here, By by) { return exchange_all(here, by.count); }},
    {"blocks", nothing, [](In here, By by) { return move_blocks(here, by.count, by.other); }},
    {"messages", nothing, [](In here, By by) { return pass_on(here, by.count); }},
    {"gradients", nothing, [](In here, By by) { return sum_gradients(here, by.count); }},
    {"split", nothing,
     [](In here, By by) { return sum_in_halves(here, by.count) && here.barrier(); }},
    {"persistent", nothing, [](In here, By by) { return sum_again_and_again(here, by.count); }},
    {"averages", nothing, [](In here, By by) { return average_with_neighbors(here, by.count); }},
    {"neighbors", nothing, [](In here, By by) { return exchange_with_neighbors(here, by.count); }},
    {"unequal", nothing,
     [](In here, By by) { return move_unequal_blocks(here, by.count, by.other); }},
    {"compressed", nothing,
     [](In here, By by) {
         const auto kind = 1 + uint32_t(by.random % DTRAIN_COMPRESS_POWERSGD);
         return sum_compressed(here, by.count, kind);
     }},
    {"subset", nothing,
     [](In here, By by) {
         return sum_in_a_subset(here, by.count, by.random | uint64_t{1} << by.other) &&
                here.barrier();
     }},
    {"group", job, // its errors name ranks of the job
     [](In here, By by) {
         return sum_in_a_group(here, by.count, by.random | uint64_t{1} << by.other, by.step) &&
                here.barrier();
     }},
    {"aborted", nothing,
     [](In here, By by) { return abort_a_copy(here, by.other) && here.barrier(); }},
    {"abandoned", nothing,
     [](In here, By by) { return abandon_a_copy(here, by.other) && here.barrier(); }},
    {"late", nothing,
     [](In here, By by) {
         const int64_t timeout = int64_t(by.random % 5'000 + 1) * ms;
         return come_late(here, by.count, by.other, timeout) && here.barrier();
     }},
    {"threads", nothing, [](In here, By by) { return sum_in_two_threads(here, by.count); }},
    {"canceled", nothing, [](In here, By) { return cancel_a_receive(here); }},
    {"registered", nothing,
     [](In here, By by) { return sum_in_registered_memory(here, by.count); }},
    {"own memory", nothing, [](In here, By by) { return sum_in_own_memory(here, by.count); }},
    {"events", nothing, [](In here, By by) { return take_events(here, by.count); }},
    {"joined", nothing, [](In here, By by) { return join_queue_early(here, by.count, by.other); }},
    // The next one's letters are not for this one's receives from anybody.
    {"mail", nothing,
     [](In here, By by) { return exchange_mail(here, by.count) && here.barrier(); }},
    {"too early", nothing, [](In here, By by) { return receive_too_early(here, by.count); }},
    {"mixed", nothing, [](In here, By by) { return mix_calls(here, by.count); }},
    {"modes", tables, [](In here, By by) { return change_consistency(here, by.step, by.random); }},
    {"exchanged", tables, [](In here, By by) { return set_and_exchange(here, by.step, by.other); }},
    {"erased", tables, [](In here, By by) { return set_and_erase_rows(here, by.step, by.other); }},
    {"function", tables, [](In here, By by) { return apply_a_function(here, by.step, by.random); }},
    {"quorum", tables, [](In here, By by) { return reach_a_quorum(here, by.step, by.other); }},
    {"asked", tables, [](In here, By by) { return ask_a_table(here, by.step, by.other); }},
};

} // namespace

std::span<const Act> all_acts() { return acts; }

} // namespace dtrain::simulator
