// An opened GPU: its primary context and its kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "driver.h"
#include "modules.h"

#include <memory>
#include <unistd.h>

struct dtrain_dv_dev {
    dtrain_dv_dev(const dtrain::cuda::Host &core, const dtrain::cuda::Driver &its_driver,
                  int its_ordinal, dtrain::cuda::DeviceNumber its_number)
        : host(core), driver(its_driver), ordinal(its_ordinal), number(its_number) {}

    const dtrain::cuda::Host &host;
    const dtrain::cuda::Driver &driver;
    int ordinal;
    dtrain::cuda::DeviceNumber number;
    dtrain::cuda::Context context = nullptr;
    uint32_t most_blocks = 1;                       // of one launch: enough to fill the GPU
    int urgent = 0, ordinary = 0;                   // priorities of streams
    std::shared_ptr<dtrain::cuda::Modules> modules; // of all that have opened it in the process

    // Whether this is the process that has opened it. In a child made by fork() the driver does not
    // work, and what it is asked to free belongs to the parent.
    bool here() const { return driver.owner == getpid(); }
    dtrain::cuda::Status check() const;
};

namespace dtrain::cuda {

// Makes the device's context current while it lives, and then what was current before.
class Current {
  public:
    explicit Current(const dtrain_dv_dev &device) : driver_(device.driver) {
        result_ = driver_.context_push(device.context);
    }
    ~Current() {
        Context popped;
        if (result_ == success) (void)driver_.context_pop(&popped);
    }
    Current(const Current &) = delete;
    Result result() const { return result_; }

  private:
    const Driver &driver_;
    Result result_;
};

// Calls f() in the device's context, and describes its failure by the format.
template <class F>
__attribute__((format(printf, 3, 4))) Status in_context(const dtrain_dv_dev &device, F &&f,
                                                        const char *format, ...) {
    if (const Status s = device.check(); s != DTRAIN_OK) return s;
    const Current current(device);
    const Result r = current.result() == success ? f() : current.result();
    if (r == success) return DTRAIN_OK;
    va_list words;
    va_start(words, format);
    const Status s = device.driver.fail_with(device.host, r, format, words);
    va_end(words);
    return s;
}

Status list(const Host *host, char *names, size_t len);
Status query(const Host *host, const char *name, dtrain_dv_attr_t *attr);
Status open(const Host *host, const char *name, dtrain_dv_dev_t **dev_p);
void close(dtrain_dv_dev_t *dev);
Status prepare(dtrain_dv_dev_t *dev, uint32_t dtype);

} // namespace dtrain::cuda
