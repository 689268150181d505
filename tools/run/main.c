/* dtrain-run: starts the processes of a job on this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

int main(int argc, char **argv) {
    options_t options;
    int result = options_parse(&options, argc, argv);
    if (result != 0) return result > 0 ? 0 : 2;
    return job_run(&options);
}
