/* dtrain-trace: joins the timelines of a job's ranks into one file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dtrain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: dtrain-trace merge OUT IN ...\n"
    "Joins the timelines of ranks (option timeline) into one file for chrome://tracing and\n"
    "ui.perfetto.dev. Ranks of one host share a clock; the times of other hosts are shifted by\n"
    "the difference of the hosts' times of day when the files were started. Files of killed\n"
    "ranks are accepted: an incomplete event at their end is left out.\n";

/* The host and clock of the first file; the others are shifted to that clock. */
typedef struct reference {
    char host[256];
    int64_t wall_offset_ns;
    int known;
} reference_t;

static int unusable(const char *path, long line, const char *why) {
    fprintf(stderr, "dtrain-trace: %s, line %ld: %s\n", path, line, why);
    return -1;
}

/* Finds a key in a line, which is one event. Quotes inside of texts have a backslash before them,
 * so no text contains such a key. */
static const char *value_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    return at != NULL ? at + strlen(key) : NULL;
}

/* Removes the comma at the end of an event; NULL when the line is not a whole event. */
static char *trim(char *line) {
    size_t length = strcspn(line, "\n");
    if (line[length] != '\n') return NULL; /* the process was killed here */
    if (length > 0 && line[length - 1] == ',') length--;
    line[length] = 0;
    return length > 1 && line[0] == '{' && line[length - 1] == '}' ? line : NULL;
}

/* The number in the line that tells the clock's offset; NULL: it is another line. */
static const char *offset_in(const char *line) {
    const char *offset = value_of(line, "\"name\":\"dtrain_wall_offset\"");
    return offset != NULL ? value_of(offset, "\"ns\":") : NULL;
}

/* Reads the host and clock from a line, if it has them; *shift_ns is what to add to the file's
 * times. Returns 0, or -1: no clock differs so much. */
static int learn(const char *line, reference_t *first, reference_t *own, int64_t *shift_ns) {
    const char *host = value_of(line, "\"name\":\"dtrain_host\"");
    const char *offset = offset_in(line);
    if (host != NULL && (host = value_of(host, "\"host\":")) != NULL)
        snprintf(own->host, sizeof own->host, "%s", host);
    if (offset == NULL) return 0;
    own->wall_offset_ns = strtoll(offset, NULL, 10);
    own->known = 1;
    if (!first->known) *first = *own;
    if (strcmp(first->host, own->host) == 0) return 0;
    return __builtin_sub_overflow(own->wall_offset_ns, first->wall_offset_ns, shift_ns) ? -1 : 0;
}

/* Reads microseconds with three digits behind the point. Returns 0, or -1: it is no such time. */
static int read_time(const char *text, int64_t *ns, char **end) {
    const int sign = *text == '-' ? -1 : 1;
    if (__builtin_mul_overflow((int64_t)strtoll(text, end, 10), 1000, ns)) return -1;
    if (**end == '.') ++*end;
    for (int unit = 100 * sign; **end >= '0' && **end <= '9'; ++*end, unit /= 10)
        if (__builtin_add_overflow(*ns, (**end - '0') * unit, ns)) return -1;
    return 0;
}

/* The offset is the first file's from now on, so that the result can be merged again. */
static void print_offset(FILE *out, const char *line, const char *offset, int64_t first_ns) {
    char *end;
    (void)strtoll(offset, &end, 10);
    fprintf(out, "%.*s%" PRId64 "%s", (int)(offset - line), line, first_ns, end);
}

/* Returns 0, or -1: the event's time is out of range. */
static int print_moved(FILE *out, const char *line, const reference_t *first, int64_t shift_ns) {
    const char *time = value_of(line, ",\"ts\":"), *offset = offset_in(line);
    int64_t ns;
    char *end;
    if (shift_ns == 0 || (time == NULL && offset == NULL)) {
        fputs(line, out);
        return 0;
    }
    if (offset != NULL) {
        print_offset(out, line, offset, first->wall_offset_ns);
        return 0;
    }
    if (read_time(time, &ns, &end) != 0 || __builtin_add_overflow(ns, shift_ns, &ns)) return -1;
    const uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(out, "%.*s%s%" PRIu64 ".%03d%s", (int)(time - line), line, ns < 0 ? "-" : "",
            size / 1000, (int)(size % 1000), end);
    return 0;
}

static int merge_file(FILE *out, const char *path, reference_t *first, long *events) {
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    long number = 0;
    int64_t shift_ns = 0;
    reference_t own = {.known = 0};
    int result = 0;
    if (in == NULL) {
        fprintf(stderr, "dtrain-trace: ");
        perror(path);
        return -1;
    }
    while (result == 0 && getline(&line, &room, in) > 0) {
        const int last = fgetc(in);
        if (last != EOF) ungetc(last, in);
        if (number++ == 0) {
            if (strcmp(line, "[\n") != 0) result = unusable(path, 1, "not a timeline of dtrain");
            continue;
        }
        if (strcmp(line, "]\n") == 0) continue;
        if (trim(line) == NULL) {
            if (last != EOF) result = unusable(path, number, "not an event");
            continue;
        }
        if ((*events)++ > 0) fputs(",\n", out);
        if (learn(line, first, &own, &shift_ns) != 0 ||
            print_moved(out, line, first, shift_ns) != 0)
            result = unusable(path, number, "a time out of range");
    }
    if (ferror(in)) result = unusable(path, number, "cannot read further");
    free(line);
    fclose(in);
    return result;
}

static int merge(const char *to, char **from) {
    FILE *out = fopen(to, "w");
    reference_t first = {.known = 0};
    long events = 0;
    int result = 0;
    if (out != NULL) {
        fputs("[\n", out);
        for (; result == 0 && *from != NULL; from++)
            result = merge_file(out, *from, &first, &events);
        fputs(events > 0 ? "\n]\n" : "]\n", out);
        if (result != 0) {
            fclose(out);
            remove(to);
            return -1;
        }
    }
    if (out == NULL || ferror(out) | fclose(out)) {
        fprintf(stderr, "dtrain-trace: ");
        perror(to);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("dtrain-trace %s\n", dtrain_version_string());
        return EXIT_SUCCESS;
    }
    if (argc < 4 || strcmp(argv[1], "merge") != 0) {
        const int help = argc == 2 && strcmp(argv[1], "--help") == 0;
        fputs(usage, help ? stdout : stderr);
        return help ? EXIT_SUCCESS : 2;
    }
    return merge(argv[2], argv + 3) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
