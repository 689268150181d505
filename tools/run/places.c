/* Spreads workers and servers over hosts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include "texts.h"

#include <stdlib.h>
#include <string.h>

void places_fill(const host_list_t *hosts, int workers, int servers, place_t *places) {
    const size_t bytes = (size_t)hosts->count * sizeof(int);
    int *there = memset(own_memory(NULL, bytes), 0, bytes); /* workers, by host */
    for (int worker = 0, host = 0, used = 0; worker < workers; worker++, used++) {
        if (used == hosts->entries[host].slots) {
            host = (host + 1) % hosts->count;
            used = 0;
        }
        places[worker] = (place_t){.host = host, .local_rank = there[host]++};
    }
    for (int worker = 0; worker < workers; worker++)
        places[worker].local_size = there[places[worker].host];
    for (int i = 0; i < servers; i++) places[workers + i] = (place_t){.host = i % hosts->count};
    free(there);
}
