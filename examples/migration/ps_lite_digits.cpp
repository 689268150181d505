// Handwritten digits as a program of ps-lite trains them: a worker pulls the weights of the pixels
// that its batch has, and pushes their gradients. The call of ps-lite that each line replaces
// stands beside it.
//
//     dtrain-run -n 2 -s 1 -- ps_lite_digits FOLDER                       FOLDER:
//     examples/digits/data
//
// SPDX-License-Identifier: Apache-2.0
extern "C" {
#include "dataset.h"
}
#include <dtrain.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

constexpr uint64_t ones = PIXELS; // the key of a feature that every sample has
constexpr int batch = 16, epochs = 30;

class Samples {
  public:
    Samples(const char *folder, const char *pattern, int shard, int shards) {
        if (dataset_load(&set_, folder, pattern, shard, shards) != 0)
            throw std::runtime_error("the data cannot be read");
    }
    ~Samples() { dataset_free(&set_); }
    Samples(const Samples &) = delete;
    Samples &operator=(const Samples &) = delete;

    size_t count() const { return set_.count; }
    const sample_t &operator[](size_t i) const { return set_.samples[i]; }

  private:
    dataset_t set_{};
};

float feature(const sample_t &sample, uint64_t key) { return key == ones ? 1 : sample.image[key]; }

// Rows of weights, one for each key, a column for each class.
struct Rows {
    std::vector<uint64_t> keys;
    std::vector<float> values; // [keys][CLASSES]: ps::KVPairs with lens of CLASSES

    // Of all features that are not zero in one of the samples.
    Rows(const Samples &samples, const size_t *chosen, size_t count) {
        for (uint64_t key = 0; key <= ones; key++)
            for (size_t i = 0; i < count; i++)
                if (feature(samples[chosen[i]], key) != 0) {
                    keys.push_back(key);
                    break;
                }
        values.resize(keys.size() * CLASSES);
    }
};

std::vector<double> scores(const Rows &weights, const sample_t &sample) {
    std::vector<double> found(CLASSES);
    for (size_t k = 0; k < weights.keys.size(); k++)
        for (size_t c = 0; c < CLASSES; c++)
            found[c] +=
                double(feature(sample, weights.keys[k])) * double(weights.values[k * CLASSES + c]);
    return found;
}

// Adds the sample's cross entropy after softmax, derived by each weight.
void add_gradient(const Rows &weights, const sample_t &sample, std::vector<float> &gradient) {
    std::vector<double> share = scores(weights, sample);
    double sum = 0;
    for (double &x : share) sum += x = std::exp(x);
    for (size_t c = 0; c < CLASSES; c++) {
        const double slope = share[c] / sum - (int(c) == sample.label ? 1 : 0);
        for (size_t k = 0; k < weights.keys.size(); k++)
            gradient[k * CLASSES + c] +=
                float(slope * double(feature(sample, weights.keys[k])) / batch);
    }
}

void train(const dtrain::Table &weights, const Samples &samples, int rank) {
    std::vector<size_t> order(samples.count());
    std::vector<uint64_t> keys;
    std::vector<float> gradient;
    dtrain::Request pushed;
    for (int epoch = 0; epoch < epochs; epoch++) {
        shuffle(order.data(), order.size(), uint64_t(1000 * rank + epoch));
        for (size_t at = 0; at < order.size(); at += batch) {
            const size_t count = std::min<size_t>(batch, order.size() - at);
            Rows rows(samples, &order[at], count);
            weights.pull_rows(rows.keys, rows.values); // kv.Wait(kv.Pull(keys, &values, &lens))
            if (pushed.valid()) pushed.wait();         // kv.Wait(timestamp)
            gradient.assign(rows.values.size(), 0);
            for (size_t i = at; i < at + count; i++)
                add_gradient(rows, samples[order[i]], gradient);
            // timestamp = kv.ZPush(keys, gradient, lens): both arrays stay as they are until the
            // wait. One call goes to all servers that have some of the rows.
            keys = rows.keys;
            pushed = weights.start().push_rows(keys, gradient);
        }
    }
    if (pushed.valid()) pushed.wait();
}

double test(const dtrain::Table &weights, const Samples &samples) {
    std::vector<size_t> all(samples.count());
    for (size_t i = 0; i < all.size(); i++) all[i] = i;
    Rows rows(samples, all.data(), all.size());
    weights.pull_rows(rows.keys, rows.values);
    size_t right = 0;
    for (size_t i = 0; i < samples.count(); i++) {
        const std::vector<double> found = scores(rows, samples[i]);
        const auto best = std::max_element(found.begin(), found.end()) - found.begin();
        right += best == samples[i].label ? 1 : 0;
    }
    return double(right) / double(samples.count());
}

int run_worker(const char *folder) {
    const dtrain::Context context;
    const dtrain::Communicator workers = context.join(); // ps::Start(0); Finalize: the destructors
    // KVServer with a handle that adds is Rule::ADD; here the servers apply the gradients. A rule
    // of one's own is a function (docs/EXTENDING.md). Consistency::BSP waits for all workers each
    // step.
    const dtrain::Table weights =
        workers.table("weights", dtrain::TableParams()
                                     .dim(CLASSES)
                                     .rule(dtrain::Rule::ADAGRAD)
                                     .learning_rate(0.1)
                                     .consistency(dtrain::Consistency::ASYNC));
    // ps::MyRank(), ps::NumWorkers()
    train(weights, {folder, "train-*.tfrecord", workers.rank(), workers.size()}, workers.rank());
    workers.barrier(); // Postoffice::Get()->Barrier(0, kWorkerGroup)
    const double accuracy = test(weights, {folder, "test.tfrecord", 0, 1});
    if (workers.rank() == 0)
        std::printf("%d workers, %.1f %% of the test set\n", workers.size(), 100 * accuracy);
    workers.barrier();
    return accuracy < 0.93; // a linear classifier
}

int run_server() { // until all workers have gone: DMLC_ROLE=server. There is no scheduler
    const dtrain::Context context;
    context.serve().wait();
    return 0;
}

} // namespace

int main(int count, char **arguments) try {
    if (dtrain::Context::role() == dtrain::Role::SERVER) return run_server(); // ps::IsServer()
    if (count == 2) return run_worker(arguments[1]);
    std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
    return 2;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
