/* Parses the command line of dtrain-run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "dtrain.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: dtrain-run -n WORKERS [option ...] [--] PROGRAM [ARGUMENT ...]\n"
    "Starts PROGRAM as the ranks 0 .. WORKERS-1 of one job on this machine.\n"
    "  -n, --workers N          number of workers\n"
    "  -s, --servers N          number of parameter servers (0)\n"
    "      --mixed              workers also serve (without servers they always do)\n"
    "      --server-program P   run P instead of dtrain-server\n"
    "      --timeout SECONDS    end the job after this time\n"
    "      --grace SECONDS      time for the other processes after the first failure (5)\n"
    "      --keep-going         no limit for this time\n"
    "      --version, --help\n"
    "Output lines are prefixed with the rank (s0, s1, ... for servers); rank 0 gets the input.\n"
    "INT, TERM and HUP are passed on to all processes; a second INT kills them. When a process\n"
    "fails, the library tells the others, which have the time of --grace to report it or to\n"
    "continue without it; then they get TERM, and KILL 2 s later. The exit status is that of the\n"
    "first process to fail (128 + the signal that killed it; 124 after the timeout).\n";

static int parse_count(const char *what, const char *text, int min, int *count) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != 0 || value < min || value > MAX_PROCESSES) {
        fprintf(stderr, "dtrain-run: %s %s: must be a number from %d to %d\n", what, text, min,
                MAX_PROCESSES);
        return -1;
    }
    *count = (int)value;
    return 0;
}

static int parse_seconds(const char *what, const char *text, bool may_be_0, double *seconds) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(value) || value < 0 || value > 1e8 ||
        (value == 0 && !may_be_0)) {
        fprintf(stderr, "dtrain-run: %s %s: must be a number of seconds%s\n", what, text,
                may_be_0 ? "" : " above 0");
        return -1;
    }
    *seconds = value;
    return 0;
}

static int complete(options_t *options, char **rest) {
    options->program = rest;
    if (options->workers == 0)
        fprintf(stderr, "dtrain-run: -n is missing (see --help)\n");
    else if (*rest == NULL)
        fprintf(stderr, "dtrain-run: the program is missing (see --help)\n");
    else
        return 0;
    return -1;
}

int options_parse(options_t *options, int argc, char **argv) {
    enum { SERVER_PROGRAM = 256, MIXED, TIMEOUT, GRACE, KEEP_GOING, VERSION, HELP };
    static const struct option known[] = {{"workers", 1, NULL, 'n'},
                                          {"servers", 1, NULL, 's'},
                                          {"server-program", 1, NULL, SERVER_PROGRAM},
                                          {"mixed", 0, NULL, MIXED},
                                          {"timeout", 1, NULL, TIMEOUT},
                                          {"grace", 1, NULL, GRACE},
                                          {"keep-going", 0, NULL, KEEP_GOING},
                                          {"version", 0, NULL, VERSION},
                                          {"help", 0, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    int option, result = 0;
    *options = (options_t){.grace = 5};
    /* '+': arguments after the program's name belong to the program. */
    while (result == 0 && (option = getopt_long(argc, argv, "+n:s:", known, NULL)) != -1) {
        switch (option) {
        case 'n': result = parse_count("-n", optarg, 1, &options->workers); break;
        case 's': result = parse_count("-s", optarg, 0, &options->servers); break;
        case SERVER_PROGRAM: options->server_program = optarg; break;
        case MIXED: options->mixed = true; break;
        case TIMEOUT: result = parse_seconds("--timeout", optarg, false, &options->timeout); break;
        case GRACE: result = parse_seconds("--grace", optarg, true, &options->grace); break;
        case KEEP_GOING: options->keep_going = true; break;
        case VERSION: printf("dtrain-run %s\n", dtrain_version_string()); return 1;
        case HELP: fputs(usage, stdout); return 1;
        default: return -1; /* getopt_long() has printed the reason */
        }
    }
    return result == 0 ? complete(options, argv + optind) : result;
}
