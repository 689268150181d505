/* dtrain-server: a process that serves a job's tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: dtrain-server [--rendezvous R --workers N --servers N --index N] [--metrics PORT]\n"
    "                     [--metrics-token FILE]\n"
    "Serves the parameter tables of a job until all its workers have left. Without options the\n"
    "environment describes the job (DTRAIN_RENDEZVOUS, DTRAIN_SIZE, DTRAIN_SERVERS,\n"
    "DTRAIN_SERVER_INDEX; dtrain-run sets them).\n"
    "--metrics [ADDRESS:]PORT: answers GET /metrics with counters for Prometheus. The default\n"
    "address is 127.0.0.1; port 0 chooses a free port, which is printed. An address that other\n"
    "hosts may reach needs --metrics-token.\n"
    "--metrics-token FILE: only to requests with \"Authorization: Bearer TOKEN\". The token is "
    "the\n"
    "first line of the file, to which only its owner may have access.\n";

static int failed(const char *what, dtrain_status_t status) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "dtrain-server: %s: %s (%s)\n", what, text, dtrain_status_name(status));
    return EXIT_FAILURE;
}

static int parse_number(const char *name, int min, int32_t *number) {
    char *end;
    long value = strtol(optarg, &end, 10);
    if (end != optarg && *end == 0 && value >= min && value <= INT_MAX) {
        *number = (int32_t)value;
        return 0;
    }
    fprintf(stderr, "dtrain-server: --%s %s: must be a number, %d or more\n", name, optarg, min);
    return -1;
}

struct arguments {
    const char *rendezvous, *metrics, *metrics_token; /* NULL: not given */
    dtrain_server_params_t params;
};

/* Returns 0; -1 with the reason on stderr; 1 when it has answered --help or --version. */
static int parse(int argc, char **argv, struct arguments *arguments) {
    enum { RENDEZVOUS, WORKERS, SERVERS, INDEX, METRICS, METRICS_TOKEN, VERSION, HELP };
    static const struct option known[] = {{"rendezvous", 1, NULL, RENDEZVOUS},
                                          {"workers", 1, NULL, WORKERS},
                                          {"servers", 1, NULL, SERVERS},
                                          {"index", 1, NULL, INDEX},
                                          {"metrics", 1, NULL, METRICS},
                                          {"metrics-token", 1, NULL, METRICS_TOKEN},
                                          {"version", 0, NULL, VERSION},
                                          {"help", 0, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    dtrain_server_params_t *params = &arguments->params;
    int option, result = 0, given = 0;
    while (result == 0 && (option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        given += option != METRICS && option != METRICS_TOKEN;
        switch (option) {
        case RENDEZVOUS: arguments->rendezvous = optarg; break;
        case WORKERS: result = parse_number("workers", 1, &params->size); break;
        case SERVERS: result = parse_number("servers", 1, &params->servers); break;
        case INDEX: result = parse_number("index", 0, &params->index); break;
        case METRICS: arguments->metrics = optarg; break;
        case METRICS_TOKEN: arguments->metrics_token = optarg; break;
        case VERSION: printf("dtrain-server %s\n", dtrain_version_string()); return 1;
        case HELP: fputs(usage, stdout); return 1;
        default: return -1; /* getopt_long() has printed the reason */
        }
    }
    if (result == 0 && (optind < argc || (given != 0 && given != 4))) {
        fputs("dtrain-server: give all four options of the job or none (see --help)\n", stderr);
        result = -1;
    }
    return result;
}

static int serve(dtrain_context_t *context, const struct arguments *arguments,
                 struct metrics *metrics) {
    dtrain_server_t *server;
    dtrain_status_t status =
        dtrain_server_create(context, arguments->rendezvous, &arguments->params, &server);
    if (status != DTRAIN_OK) return failed("cannot join the job", status);
    int result = EXIT_SUCCESS;
    if (arguments->metrics != NULL && metrics_start(metrics, server) != 0) result = EXIT_FAILURE;
    if (result == EXIT_SUCCESS) {
        status = dtrain_server_wait(server, -1);
        if (status != DTRAIN_OK) result = failed("the job failed", status);
    }
    metrics_stop(metrics);
    status = dtrain_server_destroy(server);
    return status == DTRAIN_OK ? result : failed("cannot stop serving", status);
}

int main(int argc, char **argv) {
    struct arguments arguments = {0};
    struct metrics metrics = {.listener = -1, .stop = -1};
    dtrain_context_t *context;
    DTRAIN_INIT(&arguments.params);
    int result = parse(argc, argv, &arguments);
    if (result != 0) return result > 0 ? EXIT_SUCCESS : 2;
    if (arguments.metrics_token != NULL && token_read(&metrics.token, arguments.metrics_token) != 0)
        return 2;
    if (arguments.metrics != NULL && metrics_listen(&metrics, arguments.metrics) != 0) return 2;
    dtrain_status_t status = dtrain_context_create(DTRAIN_API_VERSION, NULL, &context);
    if (status != DTRAIN_OK) return failed("cannot start", status);
    result = serve(context, &arguments, &metrics);
    dtrain_context_destroy(context);
    return result;
}
