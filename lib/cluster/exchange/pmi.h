// A client of PMI-1, the protocol of MPICH's hydra and of srun --mpi=pmi2.
// SPDX-License-Identifier: Apache-2.0
//
// The launcher's end of a stream socket answers lines of "name=value" words, one line each:
//   cmd=init pmi_version=1 pmi_subversion=1 -> cmd=response_to_init rc=0
//   cmd=get_my_kvsname                      -> cmd=my_kvsname kvsname=K
//   cmd=put kvsname=K key=A value=B         -> cmd=put_result rc=0
//   cmd=barrier_in                          -> cmd=barrier_out, once all processes have sent it
//   cmd=get kvsname=K key=A                 -> cmd=get_result rc=0 value=B
//   cmd=finalize                            -> cmd=finalize_ack
// What one process has put, another can get after the next barrier.
// Source: Balaji et al., "PMI: A Scalable Parallel Process-Management Interface for Extreme-Scale
// Systems", EuroMPI 2010, and the lines that hydra and Slurm exchange.
#pragma once
#include "cluster/exchange/exchange.h"

#include <mutex>

namespace dtrain::cluster {

class Pmi final : public Exchange {
  public:
    // fd: the socket, which stays the environment's. Nothing is sent before the first pass().
    explicit Pmi(int fd) : fd_(fd) {}
    // Says goodbye: hydra ends a job in which a process leaves without.
    ~Pmi() override;
    Pmi(const Pmi &) = delete;
    Pmi &operator=(const Pmi &) = delete;

    Status pass(bool first, std::string &text, int64_t deadline_ns) override;

  private:
    Status begin(int64_t deadline_ns);
    Status pass_round(bool first, std::string &text, int64_t deadline_ns);
    // Sends a line and reads the answer, whose command must be `expected`.
    Status ask(const std::string &line, const char *expected, int64_t deadline_ns,
               std::string &answer);
    Status send_line(const std::string &line);
    Status read_line(int64_t deadline_ns, std::string &line);

    const int fd_;
    std::mutex mutex_;
    std::string store_; // the name of the key-value space; "": not begun
    std::string rest_;  // received after the last line
    bool broken_ = false;
    int begun_by_ = 0; // the process; a forked child must not speak
    uint32_t rounds_ = 0;
};

} // namespace dtrain::cluster
