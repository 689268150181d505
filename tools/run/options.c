/* Parses the command line of dtrain-run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "output.h"

#include "dtrain.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: dtrain-run -n WORKERS [option ...] [--] PROGRAM [ARGUMENT ...]\n"
    "Starts PROGRAM as the ranks 0 .. WORKERS-1 of one job, on this machine or on several hosts.\n"
    "  -n, -np, --workers N     number of workers; also --num-proc\n"
    "  -s, --servers N          number of parameter servers (0)\n"
    "      --mixed              workers also serve (without servers they always do)\n"
    "      --server-program P   run P instead of dtrain-server\n"
    "      --timeout SECONDS    end the job after this time\n"
    "      --grace SECONDS      time for the other processes after the first failure (5)\n"
    "      --keep-going         no limit for this time\n"
    "      --version, --help\n"
    "Several hosts, by ssh (docs/JOINING.md):\n"
    "  -H, --hosts LIST         host:slots,host2:slots; without -n a worker for each slot\n"
    "      --hostfile FILE      lines with \"host slots=N\" or \"host:N\"\n"
    "      --oversubscribe      more workers than slots\n"
    "  -x VARIABLE[=VALUE]      pass it on to all processes; can be given again (DTRAIN_* are)\n"
    "      --address ADDRESS    where the others reach the first host (how ssh reached it)\n"
    "      --host-timeout SECONDS  a host is lost when nothing is heard from it for so long (20)\n"
    "  -p, --ssh-port PORT\n"
    "      --ssh-identity-file FILE\n"
    "      --ssh COMMAND        run this instead of \"ssh\"\n"
    "Workers that come and go (docs/ELASTIC.md):\n"
    "      --elastic MIN:MAX    replace workers that fail; -n: how many to begin with\n"
    "      --elastic-timeout SECONDS  end the job when fewer than MIN run for so long (600)\n"
    "      --discovery SCRIPT   prints the hosts that are there now, as in a hostfile; also\n"
    "                           --host-discovery-script\n"
    "      --discovery-interval SECONDS  run it so often (5)\n"
    "Output lines are prefixed with the rank (s0, s1, ... for servers); rank 0 gets the input.\n"
    "INT, TERM and HUP are passed on to all processes; a second INT kills them. When a process\n"
    "fails, the library tells the others, which have the time of --grace to report it or to\n"
    "continue without it; then they get TERM, and KILL 2 s later. The exit status is that of the\n"
    "first process to fail (128 + the signal that killed it; 124 after the timeout; 255 when a\n"
    "host is lost).\n";

static int parse_count(const char *what, const char *text, int min, int *count) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end != 0 || value < min || value > MAX_PROCESSES) {
        output_say("%s %s: must be a number from %d to %d", what, text, min, MAX_PROCESSES);
        return -1;
    }
    *count = (int)value;
    return 0;
}

static int parse_seconds(const char *what, const char *text, double min, double *seconds) {
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(value) || value < min || value > 1e8) {
        if (min > 0 && min < 1)
            output_say("%s %s: must be a number of seconds above 0", what, text);
        else
            output_say("%s %s: must be a number of seconds, at least %g", what, text, min);
        return -1;
    }
    *seconds = value;
    return 0;
}

static int parse_elastic(options_t *options, const char *text) {
    char *end, *last = "x";
    const long min = strtol(text, &end, 10), max = *end == ':' ? strtol(end + 1, &last, 10) : 0;
    if (!isdigit((unsigned char)text[0]) || *last != 0 || min < 1 || max < 1 ||
        max > MAX_PROCESSES || min > MAX_PROCESSES)
        output_say("--elastic %s: must be MIN:MAX, two numbers from 1 to %d", text, MAX_PROCESSES);
    else if (min > max)
        output_say("--elastic %s: MIN is larger than MAX", text);
    else
        return options->elastic_min = (int)min, options->elastic_max = (int)max, 0;
    return -1;
}

static int parse_port(const char *text) {
    char *end;
    const long port = strtol(text, &end, 10);
    if (isdigit((unsigned char)text[0]) && *end == 0 && port >= 1 && port <= 65535) return 0;
    output_say("-p %s: must be a port, from 1 to 65535", text);
    return -1;
}

/* "NAME=VALUE", or "NAME" with the value that it has here. */
static int add_variable(texts_t *passed, const char *text) {
    const size_t length = strcspn(text, "=");
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_') {
            output_say("-x %s: \"%s\" is not the name of a variable", text, name);
            return -1;
        }
    const char *value = text[length] == '=' ? text + length + 1 : getenv(name);
    if (length > 0 && length < sizeof name && value != NULL) {
        texts_set(passed, name, value);
        return 0;
    }
    output_say("-x %s: %s", text, value == NULL ? "this variable is not set here" : "no name");
    return -1;
}

static int refuse(const char *what, const char *why) {
    output_say("%s: %s", what, why);
    return -1;
}

static int check_slots(const options_t *options) {
    const host_list_t *hosts = &options->hosts;
    if (hosts->count == 0 || options->workers <= hosts->slots || options->oversubscribe) return 0;
    output_say("-n %d, but the hosts have %d slot%s (%s:%d%s); name more of them%s",
               options->workers, hosts->slots, hosts->slots == 1 ? "" : "s", hosts->entries[0].name,
               hosts->entries[0].slots, hosts->count > 1 ? ", ..." : "",
               options->elastic_max > 0 ? "" : ", or give --oversubscribe");
    return -1;
}

static int complete_fixed(options_t *options) {
    if (options->discovery != NULL || options->discovery_interval > 0 ||
        options->elastic_timeout > 0)
        return refuse(options->discovery != NULL        ? "--discovery"
                      : options->discovery_interval > 0 ? "--discovery-interval"
                                                        : "--elastic-timeout",
                      "only an elastic job (--elastic MIN:MAX) has it");
    if (options->workers == 0 && options->hosts.count == 0)
        return refuse("-n is missing", "see --help");
    if (options->workers == 0) options->workers = options->hosts.slots;
    return check_slots(options);
}

static int complete_elastic(options_t *options) {
    const host_list_t *hosts = &options->hosts;
    const int min = options->elastic_min, max = options->elastic_max;
    if (options->keep_going)
        return refuse("--keep-going", "an elastic job always goes on without a failed worker");
    if (options->oversubscribe)
        return refuse("--oversubscribe", "an elastic job fills slots; give the hosts more of them");
    if (options->address != NULL)
        return refuse("--address",
                      "any worker of an elastic job may become its first one; where hosts have "
                      "addresses that do not lead there, set DTRAIN_LISTEN_ADDRESS on them");
    if (options->discovery != NULL && hosts->count > 0)
        return refuse("--discovery", "the hosts come from it or from -H and --hostfile, not both");
    if (options->discovery == NULL && options->discovery_interval > 0)
        return refuse("--discovery-interval", "there is no --discovery");
    if (options->discovery != NULL && strchr(options->discovery, '/') != NULL &&
        access(options->discovery, X_OK) != 0) {
        output_say("--discovery %s: %s", options->discovery, strerror(errno));
        return -1;
    }
    if (options->workers > 0 && (options->workers < min || options->workers > max)) {
        output_say("-n %d: --elastic %d:%d allows %d to %d", options->workers, min, max, min, max);
        return -1;
    }
    if (hosts->count > 0 && hosts->slots < min) {
        output_say("--elastic %d:%d, but the hosts have %d slot%s", min, max, hosts->slots,
                   hosts->slots == 1 ? "" : "s");
        return -1;
    }
    if (options->workers == 0 && options->discovery == NULL)
        options->workers = hosts->count > 0 && hosts->slots < max ? hosts->slots : max;
    if (options->elastic_timeout == 0) options->elastic_timeout = 600;
    if (options->discovery_interval == 0) options->discovery_interval = 5;
    return check_slots(options);
}

static int complete(options_t *options, char **rest) {
    options->program = rest;
    if (options->agent > 0) return 0;
    const int result =
        options->elastic_max > 0 ? complete_elastic(options) : complete_fixed(options);
    if (result == 0 && *rest == NULL) return refuse("the program is missing", "see --help");
    return result;
}

/* Of a list of hosts: prints why it is wrong. */
static int listed(const host_list_t *hosts, int result) {
    if (result != 0) output_say("%s", hosts->why);
    return result;
}

int options_parse(options_t *options, int argc, char **argv) {
    enum {
        SERVER_PROGRAM = 256,
        MIXED,
        TIMEOUT,
        GRACE,
        KEEP_GOING,
        HOSTFILE,
        OVERSUBSCRIBE,
        ADDRESS,
        HOST_TIMEOUT,
        IDENTITY,
        SSH,
        ELASTIC,
        ELASTIC_TIMEOUT,
        DISCOVERY,
        DISCOVERY_INTERVAL,
        AGENT,
        VERSION,
        HELP
    };
    static const struct option known[] = {{"workers", 1, NULL, 'n'},
                                          {"np", 1, NULL, 'n'},
                                          {"num-proc", 1, NULL, 'n'},
                                          {"servers", 1, NULL, 's'},
                                          {"server-program", 1, NULL, SERVER_PROGRAM},
                                          {"mixed", 0, NULL, MIXED},
                                          {"timeout", 1, NULL, TIMEOUT},
                                          {"grace", 1, NULL, GRACE},
                                          {"keep-going", 0, NULL, KEEP_GOING},
                                          {"hosts", 1, NULL, 'H'},
                                          {"host", 1, NULL, 'H'},
                                          {"hostfile", 1, NULL, HOSTFILE},
                                          {"oversubscribe", 0, NULL, OVERSUBSCRIBE},
                                          {"address", 1, NULL, ADDRESS},
                                          {"host-timeout", 1, NULL, HOST_TIMEOUT},
                                          {"ssh-port", 1, NULL, 'p'},
                                          {"ssh-identity-file", 1, NULL, IDENTITY},
                                          {"ssh", 1, NULL, SSH},
                                          {"elastic", 1, NULL, ELASTIC},
                                          {"elastic-timeout", 1, NULL, ELASTIC_TIMEOUT},
                                          {"discovery", 1, NULL, DISCOVERY},
                                          {"host-discovery-script", 1, NULL, DISCOVERY},
                                          {"discovery-interval", 1, NULL, DISCOVERY_INTERVAL},
                                          {"agent", 1, NULL, AGENT},
                                          {"version", 0, NULL, VERSION},
                                          {"help", 0, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    const double above_0 = 1e-9;
    host_list_t *hosts = &options->hosts;
    int option, result = 0;
    *options = (options_t){.grace = 5, .host_timeout = 20, .ssh = "ssh"};
    /* '+': arguments after the program's name belong to the program. */
    while (result == 0 && (option = getopt_long(argc, argv, "+n:s:H:p:x:", known, NULL)) != -1) {
        switch (option) {
        case 'n':
            if (strcmp(optarg, "p") == 0 && optind < argc) optarg = argv[optind++]; /* -np N */
            result = parse_count("-n", optarg, 1, &options->workers);
            break;
        case 's': result = parse_count("-s", optarg, 0, &options->servers); break;
        case SERVER_PROGRAM: options->server_program = optarg; break;
        case MIXED: options->mixed = true; break;
        case TIMEOUT:
            result = parse_seconds("--timeout", optarg, above_0, &options->timeout);
            break;
        case GRACE: result = parse_seconds("--grace", optarg, 0, &options->grace); break;
        case KEEP_GOING: options->keep_going = true; break;
        case 'H': result = listed(hosts, host_list_add(hosts, "-H", optarg)); break;
        case HOSTFILE: result = listed(hosts, host_list_read(hosts, optarg)); break;
        case OVERSUBSCRIBE: options->oversubscribe = true; break;
        case 'x': result = add_variable(&options->passed, optarg); break;
        case ADDRESS: options->address = optarg; break;
        case HOST_TIMEOUT:
            result = parse_seconds("--host-timeout", optarg, 2, &options->host_timeout);
            break;
        case 'p': result = parse_port(options->ssh_port = optarg); break;
        case IDENTITY: options->ssh_identity = optarg; break;
        case SSH: options->ssh = optarg; break;
        case ELASTIC: result = parse_elastic(options, optarg); break;
        case ELASTIC_TIMEOUT:
            result = parse_seconds("--elastic-timeout", optarg, above_0, &options->elastic_timeout);
            break;
        case DISCOVERY: options->discovery = optarg; break;
        case DISCOVERY_INTERVAL:
            result = parse_seconds("--discovery-interval", optarg, above_0,
                                   &options->discovery_interval);
            break;
        case AGENT: result = parse_seconds("--agent", optarg, above_0, &options->agent); break;
        case VERSION: printf("dtrain-run %s\n", dtrain_version_string()); return 1;
        case HELP: fputs(usage, stdout); return 1;
        default: return -1; /* getopt_long() has printed the reason */
        }
    }
    return result == 0 ? complete(options, argv + optind) : result;
}

void options_free(options_t *options) {
    host_list_free(&options->hosts);
    texts_free(&options->passed);
}
