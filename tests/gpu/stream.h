// A stream of a test's on a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "contract/gpu.h"

namespace gpu {

class Stream {
  public:
    explicit Stream(int device = 0) : device_(present(device)) {
        const Current current(device_);
        call<dtrain::cuda::Stream *, unsigned, int>("cuStreamCreateWithPriority", &stream_, 1u, 0);
    }
    ~Stream() {
        const Current current(device_);
        (void)function<int(dtrain::cuda::Stream)>("cuStreamDestroy_v2")(stream_);
    }
    Stream(const Stream &) = delete;
    dtrain::cuda::Stream get() const { return stream_; }
    void fill(void *address, unsigned char value, size_t bytes) {
        const Current current(device_);
        call<Address, unsigned char, size_t, dtrain::cuda::Stream>(
            "cuMemsetD8Async", reinterpret_cast<Address>(address), value, bytes, stream_);
    }
    void fill(const Buffer &buffer, unsigned char value) {
        fill(buffer.address(), value, buffer.bytes());
    }
    void copy(void *to, const void *from, size_t bytes) {
        const Current current(device_);
        if (bytes > 0)
            call<Address, Address, size_t, dtrain::cuda::Stream>(
                "cuMemcpyAsync", reinterpret_cast<Address>(to), reinterpret_cast<Address>(from),
                bytes, stream_);
    }
    void copy(const Buffer &to, const Buffer &from) {
        copy(to.address(), from.address(), from.bytes());
    }
    void synchronize() {
        const Current current(device_);
        call<dtrain::cuda::Stream>("cuStreamSynchronize", stream_);
    }
    // The parameters of an operation in its order.
    dtrain_op_params_t params() const {
        dtrain_op_params_t params;
        DTRAIN_INIT(&params);
        params.stream_type = DTRAIN_STREAM_CUDA;
        params.stream = stream_;
        return params;
    }

  private:
    const int device_;
    dtrain::cuda::Stream stream_ = nullptr;
};

} // namespace gpu
