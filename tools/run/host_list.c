/* Parses lists of hosts and hostfiles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "host_list.h"

#include "texts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r\n\v\f";

static int wrong(host_list_t *hosts, const char *where, const char *text, const char *why) {
    snprintf(hosts->why, sizeof hosts->why, "%s: \"%.100s\" %s", where, text, why);
    return -1;
}

/* What ssh would take for an option, or a shell for more than a name, is no host. */
static int is_name(const char *name) {
    if (name[0] == 0 || name[0] == '-' || strlen(name) > 255) return 0;
    for (const char *c = name; *c != 0; c++)
        if (!isalnum((unsigned char)*c) && strchr("._-@:%", *c) == NULL) return 0;
    return 1;
}

static int add(host_list_t *hosts, const char *where, const char *name, const char *slots_text) {
    char *end;
    const long slots = slots_text != NULL ? strtol(slots_text, &end, 10) : 1;
    if (!is_name(name)) return wrong(hosts, where, name, "is not a host's name");
    if (slots_text != NULL && (end == slots_text || *end != 0 || slots < 1 || slots > MAX_SLOTS))
        return wrong(hosts, where, slots_text, "is not a number of slots from 1 to 4096");
    int i = 0;
    while (i < hosts->count && strcmp(hosts->entries[i].name, name) != 0) i++;
    if (i == MAX_HOSTS) return wrong(hosts, where, name, "is one host too many: at most 4096");
    if (hosts->slots + slots > MAX_SLOTS)
        return wrong(hosts, where, name, "has too many slots: at most 4096 on all hosts together");
    if (i == hosts->count) {
        hosts->entries = own_memory(hosts->entries, (size_t)(i + 1) * sizeof *hosts->entries);
        char *copy = own_memory(NULL, strlen(name) + 1);
        hosts->entries[hosts->count++] = (host_entry_t){.name = strcpy(copy, name)};
    }
    hosts->entries[i].slots += (int)slots;
    hosts->slots += (int)slots;
    return 0;
}

/* Splits "host:slots", "[address]:slots" or "host" in place; more colons are an IPv6 address. */
static char *split_slots(char **name) {
    char *colon = strrchr(*name, ':'), *end = strchr(*name, ']');
    if ((*name)[0] == '[' && end != NULL) {
        (*name)++;
        *end = 0;
        return end[1] == ':' ? end + 2 : end[1] != 0 ? end + 1 : NULL;
    }
    if (colon == NULL || strchr(*name, ':') != colon) return NULL;
    *colon = 0;
    return colon + 1;
}

int host_list_add(host_list_t *hosts, const char *what, const char *text) {
    char *copy = own_memory(NULL, strlen(text) + 1), *rest = strcpy(copy, text), *name;
    int result = 0;
    while (result == 0 && (name = strsep(&rest, ",")) != NULL) {
        char *slots = split_slots(&name);
        result = add(hosts, what, name, slots);
    }
    free(copy);
    return result;
}

static int add_line(host_list_t *hosts, const char *where, char *line) {
    char *state, *name, *slots, *word;
    line[strcspn(line, "#")] = 0;
    name = strtok_r(line, blanks, &state);
    if (name == NULL) return 0;
    slots = split_slots(&name);
    while ((word = strtok_r(NULL, blanks, &state)) != NULL) {
        if (strncmp(word, "slots=", 6) != 0 || slots != NULL)
            return wrong(hosts, where, word, "is not understood (HOST, HOST:N or HOST slots=N)");
        slots = word + 6;
    }
    return add(hosts, where, name, slots);
}

int host_list_parse(host_list_t *hosts, FILE *file, const char *what) {
    char *line = NULL, where[300];
    size_t room = 0;
    int result = 0, number = 0;
    errno = 0;
    while (result == 0 && getline(&line, &room, file) >= 0) {
        snprintf(where, sizeof where, "%.250s, line %d", what, ++number);
        result = add_line(hosts, where, line);
    }
    free(line);
    if (result != 0 || !ferror(file)) return result;
    snprintf(hosts->why, sizeof hosts->why, "%.250s: %s", what, strerror(errno));
    return -1;
}

int host_list_read(host_list_t *hosts, const char *path) {
    char what[300];
    FILE *file = fopen(path, "re");
    snprintf(what, sizeof what, "hostfile %.250s", path);
    if (file == NULL) {
        snprintf(hosts->why, sizeof hosts->why, "%s: %s", what, strerror(errno));
        return -1;
    }
    int result = host_list_parse(hosts, file, what);
    if (result == 0 && hosts->count == 0) {
        snprintf(hosts->why, sizeof hosts->why, "%s: it names no host", what);
        result = -1;
    }
    fclose(file);
    return result;
}

void host_list_free(host_list_t *hosts) {
    for (int i = 0; i < hosts->count; i++) free(hosts->entries[i].name);
    free(hosts->entries);
    *hosts = (host_list_t){0};
}
