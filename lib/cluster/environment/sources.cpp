// The list of sources.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/environment/source.h"

namespace dtrain::cluster {

extern const Source dtrain_place, torchrun, kubeflow_trainer, tensorflow, jax_job, sagemaker,
    aws_batch, mpi_launchers, kubernetes, dtrain_job;

namespace {

// What started the process itself comes before what may have started that. (A program in a pod of
// Kubernetes may have been started there by mpirun.)
const Source *const all[] = {&dtrain_place, &torchrun,      &kubeflow_trainer, &tensorflow,
                             &jax_job,      &mpi_launchers, &sagemaker,        &aws_batch,
                             &kubernetes,   &dtrain_job};

} // namespace

std::span<const Source *const> sources() { return all; }

} // namespace dtrain::cluster
