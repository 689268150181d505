/* The agent: dtrain-run on another host, started by the launcher through ssh. It starts processes,
 * passes their output on, and ends them when the launcher says so, ends, or is not heard any more.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_AGENT_H
#define RUN_AGENT_H

/* What the agent writes before its first frame; files that a login shell reads may print before. */
#define agent_greeting "\ndtrain-run agent 1\n"

/* limit: seconds of silence after which the launcher is lost. Returns the exit status. */
int agent_run(double limit);

#endif
