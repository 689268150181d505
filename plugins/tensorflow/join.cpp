// DtrainJoin: for a rank without more data. Until all ranks have run it, this one contributes zeros
// to the others' named all-reduces, and their other ops fail: on the job's communicator, and on
// those of the process sets that this rank is in.
// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/group.h"
#include "tensorflow/joined.h"
#include "tensorflow/op.h"
#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace dtrain::tensorflow {

namespace {

constexpr int64_t slice_ns = 50'000'000;      // between two looks where there is one communicator
constexpr int64_t short_slice_ns = 5'000'000; // where there are several, of which it waits for one

class Join {
  public:
    explicit Join(Construction &construction)
        : target_(construction), queue_(entry_of(construction.text("queue"))),
          sets_(construction.texts("sets")), set_queues_(construction.texts("set_queues")) {}

    void run(Call &call) {
        const std::string what = "join";
        Joined job(target_.entry, queue_);
        if (!check_kind(call, target_, job.comm(), Kind::communicator, what) ||
            !check_object(call, queue_, job.queue(), Kind::gradients, what))
            return;
        Tensor last;
        if (!call.output(0, *find_dtype(DTRAIN_I32), {}, last)) return;
        dtrain_status_t status = job.start();
        if (status < 0) {
            call.fail(status, what);
            return;
        }
        std::deque<Joined> sets;
        start_sets(sets);
        wait(job, sets);
        dtrain_event_t event;
        status = job.status();
        if (status < 0)
            call.fail(status, what, job.request());
        else if (dtrain_request_result(job.request(), &event) >= 0)
            *static_cast<int32_t *>(last.data) = event.peer;
    }

  private:
    // Sets that were removed, or are broken, have no ops that would wait for this rank.
    void start_sets(std::deque<Joined> &sets) const {
        for (size_t i = 0; i < std::min(sets_.size(), set_queues_.size()); i++) {
            Joined &set = sets.emplace_back(entry_of(sets_[i]), entry_of(set_queues_[i]));
            if (!set.exists() || set.start() < 0) sets.pop_back();
        }
    }

    // Returns when all ranks are here. If that fails, sets are broken: their ranks may never come,
    // and this one must not contribute zeros when it goes on.
    static void wait(Joined &job, std::deque<Joined> &sets) {
        std::vector<Joined *> left = {&job};
        for (Joined &set : sets) left.push_back(&set);
        while (std::erase_if(left, [](const Joined *one) { return one->ended(); }), !left.empty()) {
            int64_t wait_ns = left.size() == 1 ? slice_ns : short_slice_ns;
            for (Joined *one : left) {
                if (one != &job && job.status() < 0) one->abort();
                one->step(std::exchange(wait_ns, 0));
            }
        }
    }

    const Target target_;
    Entry &queue_;
    const std::vector<std::string> sets_, set_queues_; // communicators, and their queues
};

} // namespace

Definition join() {
    return define<Join>(
        "DtrainJoin", {}, {"last: int32"},
        {"queue: string", "sets: list(string) = []", "set_queues: list(string) = []"},
        unknown_shapes);
}

} // namespace dtrain::tensorflow
