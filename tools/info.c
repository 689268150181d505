/* dtrain-info: prints what this build can do on this machine, and every option.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 96 };

/* Returns the end of the value that begins at `json`, which is well-formed JSON. *nested: whether
 * it is a container that contains another one. */
static const char *skip_value(const char *json, int *nested) {
    int depth = 0, quoted = 0;
    *nested = 0;
    for (; *json != 0; json++) {
        if (quoted) {
            if (*json == '\\' && json[1] != 0)
                json++;
            else if (*json == '"')
                quoted = 0;
        } else if (*json == '"') {
            quoted = 1;
        } else if (*json == '{' || *json == '[') {
            if (++depth > 1) *nested = 1;
        } else if (*json == '}' || *json == ']') {
            if (--depth == 0) return json + 1;
        }
    }
    return json;
}

static void new_line(int depth) { printf("\n%*s", 2 * depth, ""); }

/* Prints indented JSON; a container without nested ones stays on one line if it fits. */
static void print_json(const char *json) {
    int depth = 0, nested;
    while (*json != 0) {
        const char *end = json + 1;
        if (*json == '{' || *json == '[') {
            end = skip_value(json, &nested);
            if (nested || end - json > LINE_WIDTH - 2 * depth) {
                end = json + 1;
                putchar(*json);
                new_line(++depth);
                json = end;
                continue;
            }
        } else if (*json == '}' || *json == ']') {
            new_line(--depth);
        } else if (*json == '"') {
            for (; *end != 0 && *end != '"'; end++)
                if (*end == '\\' && end[1] != 0) end++;
            if (*end != 0) end++;
        }
        if (!isspace((unsigned char)*json)) printf("%.*s", (int)(end - json), json);
        if (*json == ':') putchar(' ');
        if (*json == ',') new_line(depth);
        json = end;
    }
    putchar('\n');
}

/* Returns the description, which the caller frees; NULL when memory is short. */
static char *describe(dtrain_context_t *context) {
    size_t length = dtrain_context_describe(context, NULL, 0);
    char *text = malloc(length + 1);
    if (text != NULL) dtrain_context_describe(context, text, length + 1);
    return text;
}

/* Copies the value of a key of the object that `json` begins with, without quotes. */
static void copy_field(const char *json, const char *key, char *out, size_t size) {
    char pattern[64];
    int nested;
    const char *end = skip_value(json, &nested);
    snprintf(pattern, sizeof pattern, "\"%s\": ", key);
    const char *at = strstr(json, pattern);
    *out = 0;
    if (at == NULL || at > end) return;
    at += strlen(pattern);
    size_t length = strcspn(at, *at == '"' ? "" : ",}");
    if (*at == '"') length = strcspn(++at, "\"");
    snprintf(out, size, "%.*s", (int)length, at);
}

/* Prints the network cards that a transport has reported, one per line. */
static void print_cards(const char *json) {
    char transport[32], name[64], address[64], node[16], speed[32], state[32], used[8], why[256];
    const char *card = strstr(json, "\"cards\": [");
    int nested;
    if (card == NULL) return;
    for (card = strchr(card, '{'); card != NULL && *card == '{'; card += strspn(card, ", \n")) {
        copy_field(card, "transport", transport, sizeof transport);
        copy_field(card, "card", name, sizeof name);
        copy_field(card, "address", address, sizeof address);
        copy_field(card, "numa_node", node, sizeof node);
        copy_field(card, "bandwidth_bytes_per_second", speed, sizeof speed);
        copy_field(card, "state", state, sizeof state);
        copy_field(card, "used", used, sizeof used);
        copy_field(card, "why", why, sizeof why);
        printf("    %-16s %-16s node %-3s %6.1f Gbit/s  %-8s %s: %s\n", name, address,
               *node == '-' ? "?" : node, atof(speed) * 8e-9, state,
               strcmp(used, "true") == 0 ? "used" : "not used", why);
        card = skip_value(card, &nested);
    }
}

/* Whether a list such as "shm,tcp" contains the name. */
static int is_listed(const char *list, const char *name) {
    char all[512], one[64];
    snprintf(all, sizeof all, ",%s,", list);
    snprintf(one, sizeof one, ",%s,", name);
    return strstr(all, one) != NULL;
}

/* Tries each transport of the project alone: whether it works here, and if not, why. */
static void print_transports(void) {
    static const char *const names[] = {"shm", "tcp", "ofi", "ucx"};
    char named[256] = "";
    dtrain_options_t *configured;
    if (dtrain_options_create(&configured) != DTRAIN_OK) return;
    dtrain_options_get(configured, "transports", named, sizeof named);
    dtrain_options_destroy(configured);
    printf("\nTransports (option transports: %s)\n\n", named);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int listed = is_listed(named, names[i]);
        dtrain_options_t *options = NULL;
        dtrain_context_t *context = NULL;
        char error[512] = "", *text = NULL;
        if (dtrain_options_create(&options) != DTRAIN_OK ||
            dtrain_options_set(options, "transports", names[i]) != DTRAIN_OK ||
            dtrain_options_set(options, "log.level", "error") != DTRAIN_OK ||
            dtrain_context_create(DTRAIN_API_VERSION, options, &context) != DTRAIN_OK)
            dtrain_last_error(error, sizeof error);
        if (context != NULL)
            printf("%-4s %s\n", names[i],
                   listed ? "used" : "can be used, but is not named in the option");
        else
            printf("%-4s %s: %s\n", names[i], listed ? "NAMED, BUT NOT USED" : "cannot be used",
                   error);
        if (context != NULL) text = describe(context);
        if (text != NULL) print_cards(text);
        free(text);
        if (context != NULL) dtrain_context_destroy(context);
        dtrain_options_destroy(options);
    }
}

static void print_options(void) {
    const char *key, *value, *text;
    printf("\nOptions (environment: DTRAIN_ and the key in capitals, dots as underscores)\n\n");
    printf("%-22s %-10s %s\n", "key", "default", "what it does");
    for (uint32_t i = 0; dtrain_options_describe(i, &key, &value, &text) == DTRAIN_OK; i++)
        printf("%-22s %-10s %s\n", key, *value != 0 ? value : "-", text);
}

/* Prints how a process with this environment would join. Fails if it could not. */
static int print_join(void) {
    char joins[8];
    const size_t length = dtrain_join_describe(NULL, NULL, NULL, 0);
    char *text = length > 0 ? malloc(length + 1) : NULL;
    if (text == NULL) return EXIT_FAILURE;
    dtrain_join_describe(NULL, NULL, text, length + 1);
    print_json(text);
    copy_field(text, "joins", joins, sizeof joins);
    free(text);
    return strcmp(joins, "true") == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv) {
    const int json_only = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc == 2 && strcmp(argv[1], "--join") == 0) return print_join();
    if (argc > 1 && !json_only) {
        const int help = strcmp(argv[1], "--help") == 0;
        fprintf(help ? stdout : stderr,
                "usage: dtrain-info [--json | --join]\n"
                "Prints what this build of dtrain can do on this machine, and its "
                "options; --json: without the options.\n"
                "--join: how a process with this environment would join a job, and why.\n");
        return help ? EXIT_SUCCESS : 2;
    }
    dtrain_context_t *context = NULL;
    dtrain_status_t status = dtrain_context_create(DTRAIN_API_VERSION, NULL, &context);
    if (status != DTRAIN_OK) { /* describe() works without a context */
        char error[512];
        dtrain_last_error(error, sizeof error);
        fprintf(stderr, "dtrain-info: cannot start: %s (%s)\n", error, dtrain_status_name(status));
    }
    char *text = describe(context);
    if (!json_only) printf("dtrain %s\n\n", dtrain_version_string());
    if (text != NULL) print_json(text);
    if (!json_only) print_transports();
    if (!json_only) print_options();
    free(text);
    if (context != NULL) dtrain_context_destroy(context);
    return status == DTRAIN_OK && text != NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
