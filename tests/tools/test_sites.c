/* The hosts of an elastic job: which of them may take a worker, and when.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static host_entry_t entries[3];
static const host_list_t none;

static host_list_t list(const char *first, int slots, const char *second, int more) {
    const size_t count = second != NULL ? 2 : 1;
    static char names[2][16];
    strcpy(names[0], first);
    if (second != NULL) strcpy(names[1], second);
    entries[0] = (host_entry_t){names[0], slots};
    entries[1] = (host_entry_t){names[1], more};
    return (host_list_t){.entries = entries, .count = (int)count, .slots = slots + more};
}

/* As if all hosts were connected, with so many workers. */
static void connect_all(sites_t *sites, int used) {
    for (int i = 0; i < sites->count; i++) {
        sites->list[i].up = true;
        sites->list[i].used = used;
    }
}

static void hosts_fill_in_their_order(void **state) {
    (void)state;
    sites_t sites = {0};
    const host_list_t hosts = list("a", 1, "b", 2);
    sites_update(&sites, &hosts);
    assert_int_equal(sites_choose(&sites, 0), -1); /* not connected */
    connect_all(&sites, 0);
    assert_int_equal(sites_choose(&sites, 0), 0);
    connect_all(&sites, 1);
    assert_int_equal(sites_choose(&sites, 0), 1);
    assert_int_equal(site_room(&sites.list[1], 0), 1);
    connect_all(&sites, 2);
    assert_int_equal(sites_choose(&sites, 0), -1);
    sites_free(&sites);
}

static void a_host_waits_longer_after_each_failure(void **state) {
    (void)state;
    sites_t sites = {0};
    const host_list_t hosts = list("a", 1, NULL, 0);
    sites_update(&sites, &hosts);
    connect_all(&sites, 0);
    site_t *site = &sites.list[0];
    double now = 100;
    for (int failure = 1; failure < SITE_FAILURES; failure++) {
        const double wait = 1 << (failure - 1);
        assert_false(site_failed(site, now, now + 0.5));
        now += 0.5;
        assert_int_equal(site_room(site, now + wait - 0.1), 0);
        assert_int_equal(site_prospect(site), 1);
        assert_int_equal(site_room(site, now + wait), 1);
        now += wait;
    }
    assert_true(site_failed(site, now, now + 0.5));
    assert_int_equal(site_prospect(site), 0);
    assert_int_equal(sites_choose(&sites, now + 1000), -1);
    sites_free(&sites);
}

static void workers_that_start_together_fail_once(void **state) {
    (void)state;
    sites_t sites = {0};
    const host_list_t hosts = list("a", 8, NULL, 0);
    sites_update(&sites, &hosts);
    for (int i = 0; i < 8; i++) assert_false(site_failed(&sites.list[0], 10, 11 + i));
    assert_int_equal(sites.list[0].failures, 1);
    sites_free(&sites);
}

static void a_worker_that_has_run_for_a_while_ends_the_row(void **state) {
    (void)state;
    sites_t sites = {0};
    const host_list_t hosts = list("a", 1, NULL, 0);
    sites_update(&sites, &hosts);
    connect_all(&sites, 0);
    site_t *site = &sites.list[0];
    for (double now = 100; now < 10000; now += 200) {
        assert_false(site_failed(site, now, now + 1));
        assert_false(site_failed(site, now + 50, now + 150)); /* it ran 100 s */
        assert_int_equal(site->failures, 0);
        assert_int_equal(site_room(site, now + 150), 1);
    }
    sites_free(&sites);
}

static void a_host_that_comes_back_begins_anew(void **state) {
    (void)state;
    sites_t sites = {0};
    host_list_t hosts = list("a", 1, NULL, 0);
    sites_update(&sites, &hosts);
    connect_all(&sites, 0);
    sites.list[0].busy = true;
    for (double now = 100; !site_failed(&sites.list[0], now, now + 1); now += 2) continue;
    sites_update(&sites, &hosts); /* it has not gone */
    assert_true(sites.list[0].left_out);
    sites_update(&sites, &none);
    assert_int_equal(site_prospect(&sites.list[0]), 0);
    sites_update(&sites, &hosts);
    assert_false(sites.list[0].left_out);
    assert_int_equal(site_room(&sites.list[0], 1000), 1);
    sites_free(&sites);
}

static void entries_stay_while_they_are_needed(void **state) {
    (void)state;
    sites_t sites = {0};
    host_list_t hosts = list("a", 1, "b", 1);
    sites_update(&sites, &hosts);
    sites.list[0].busy = true;
    hosts = list("c", 3, NULL, 0);
    sites_update(&sites, &hosts);
    assert_int_equal(sites.count, 2); /* c has taken the place of b, where nothing is */
    assert_string_equal(sites.list[0].name, "a");
    assert_int_equal(sites.list[0].slots, 0);
    assert_string_equal(sites.list[1].name, "c");
    assert_int_equal(sites.list[1].slots, 3);
    hosts = list("d", 1, "c", 1);
    sites_update(&sites, &hosts);
    assert_int_equal(sites.count, 3);
    assert_string_equal(sites.list[2].name, "d");
    assert_int_equal(sites.list[1].slots, 1);
    sites_free(&sites);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_fill_in_their_order),
        cmocka_unit_test(a_host_waits_longer_after_each_failure),
        cmocka_unit_test(workers_that_start_together_fail_once),
        cmocka_unit_test(a_worker_that_has_run_for_a_while_ends_the_row),
        cmocka_unit_test(a_host_that_comes_back_begins_anew),
        cmocka_unit_test(entries_stay_while_they_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
