// Runs a compression method as an operation on its communicator.
// SPDX-License-Identifier: Apache-2.0
#include "compression/compressor.h"

#include "collectives/communicator/agreement.h"
#include "collectives/communicator/sequence.h"
#include "compression/elements.h"

#include <cmath>

namespace dtrain::compression {

using collectives::Call;
using collectives::Communicator;
using collectives::Sequence;

// One all-reduce: alternates between the method's arithmetic and its collective calls.
class Run final : public Sequence {
  public:
    Run(Compressor &compressor, const collectives::CallOptions &options)
        : Sequence(options.request, *compressor.comm_, options.timeout_ns),
          compressor_(compressor) {
        set_result_bytes(compressor.params_.count * sizeof(float));
    }
    void dispose() override {
        compressor_.give_back();
        delete this;
    }

  private:
    Step step() override {
        Action action = compressor_.method_->next();
        switch (action.kind) {
        case Action::Kind::again: break;
        case Action::Kind::call: return call(action.call);
        case Action::Kind::done: return Step::done;
        case Action::Kind::corrupt: return broken(DTRAIN_ERR_CORRUPT, action.rank);
        }
        return Step::again;
    }

    Compressor &compressor_;
};

Status Compressor::create(Communicator &parent, const dtrain_compressor_params_t &given,
                          std::unique_ptr<Compressor> &out) {
    const int64_t deadline_ns = parent.deadline(0);
    Params params;
    collectives::Agreement agreement(cluster::CallKind::compressor_create);
    agreement.check(read_params(given, params))
        .add("kind", uint64_t(params.kind))
        .add("count", params.count)
        .add("elements kept", params.kept)
        .add("matrices", uint64_t(params.matrices.size()))
        .add("rows", params.matrices.size() == 1 ? params.matrices[0].rows : 0)
        .add("rows or columns of the matrices (a hash)", hash_of(params.matrices))
        .add("rank", uint64_t(params.rank))
        .add("block", uint64_t(params.block))
        .add("seed", params.seed)
        .add("flags", uint64_t(params.flags));
    if (Status s = agreement.reach(parent, deadline_ns); s != DTRAIN_OK) return s;
    std::unique_ptr<Compressor> made(new Compressor(params));
    if (Status s = parent.duplicate_until(deadline_ns, made->comm_); s != DTRAIN_OK)
        return fail_within(s, "compressor_create");
    made->method_ = make_method(params, {.rank = made->comm_->rank(), .size = made->comm_->size()});
    out = std::move(made);
    return DTRAIN_OK;
}

Status Compressor::take() {
    if (!busy_.exchange(true, std::memory_order_acq_rel)) return DTRAIN_OK;
    return fail(DTRAIN_ERR_BUSY, "compressor: its last operation is not finished; wait for it");
}

Status Compressor::post(const float *send, float *recv, uint32_t op,
                        const collectives::CallOptions &options) {
    if (op != DTRAIN_SUM && op != DTRAIN_AVG)
        return fail(DTRAIN_ERR_UNSUPPORTED,
                    "compressed allreduce: op %u: only sum and avg can be compressed", op);
    Call plain = {.kind = collectives::Kind::allreduce,
                  .send = send,
                  .recv = recv,
                  .count = params_.count,
                  .dtype = DTRAIN_F32,
                  .op = op};
    collectives::CollectiveSpec spec;
    if (Status s = check_call(plain, comm_->rank(), comm_->size(), spec); s != DTRAIN_OK) return s;
    std::unique_ptr<Run> run(new (*options.request) Run(*this, options));
    if (Status s = take(); s != DTRAIN_OK) return s;
    cluster::CallRecord record = record_of(plain, comm_->size());
    record.kind = cluster::CallKind::compressed_all_reduce;
    if (Status s = comm_->note_call(record); s != DTRAIN_OK) {
        give_back();
        return s;
    }
    operations_++;
    method_->begin(send, recv, op == DTRAIN_AVG);
    comm_->hand_over(run.release(), options);
    return DTRAIN_OK;
}

Status Compressor::reset() {
    if (Status s = take(); s != DTRAIN_OK) return s;
    method_->reset();
    give_back();
    return DTRAIN_OK;
}

Status Compressor::stats(dtrain_compression_stats_t &out) {
    if (Status s = take(); s != DTRAIN_OK) return s;
    out = {};
    out.operations = operations_;
    out.raw_bytes = operations_ * allreduce_bytes(params_.count * sizeof(float), comm_->size());
    out.sent_bytes = operations_ * method_->sent_bytes();
    out.residual = std::sqrt(method_->kept_square());
    give_back();
    return DTRAIN_OK;
}

} // namespace dtrain::compression
