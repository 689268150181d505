/* dtrain-run: starts the processes of a job, on this machine or on several.
 * SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"
#include "job.h"

int main(int argc, char **argv) {
    options_t options;
    int result = options_parse(&options, argc, argv);
    if (result != 0) return result > 0 ? 0 : 2;
    return options.agent > 0 ? agent_run(options.agent) : job_run(&options);
}
