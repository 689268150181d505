/* dtrain-run: starts the processes of a job, on this machine or on several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"
#include "job.h"

int main(int argc, char **argv) {
    options_t options;
    const int parsed = options_parse(&options, argc, argv);
    int status = parsed > 0 ? 0 : 2;
    if (parsed == 0) status = options.agent > 0 ? agent_run(options.agent) : job_run(&options);
    options_free(&options);
    return status;
}
