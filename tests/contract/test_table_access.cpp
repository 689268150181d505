// Restricted tables: what a worker may do is what its tokens grant, whatever it asks for.
// SPDX-License-Identifier: Apache-2.0
#include "contract/ranks.h"
#include "temporary_folder.h"

#include <sys/stat.h>

namespace {

using ranks::last_error;
using ranks::Options;

constexpr int workers = 3, servers = 2, length = 100;
constexpr char chief[] = "the-token-of-the-chief", reader[] = "the-token-of-a-reader",
               writer[] = "the-token-of-a-writer";

// The ranks' roles: 0 may do everything, 1 may read, 2 may write.
class Job {
  public:
    Job() {
        const std::string lines = std::string("weights* all ") + chief + "\nweights* pull " +
                                  reader + "\nweights* push " + writer + "\nothers push,pull " +
                                  chief + "\n";
        write("access", lines);
        write("0", chief);
        write("1", std::string("# a comment\n") + reader + "\n");
        write("2", writer);
        write("3", "a-token-that-nobody-knows");
    }
    // own: the number of its file of tokens, by rank.
    void run(const std::function<void(int, dtrain_comm_t *)> &body,
             std::vector<int> own = {0, 1, 2}) {
        ranks::run_each(
            workers, servers,
            [&](int rank) {
                Options options = {{"checkpoint.directory", folder_.file("checkpoints")},
                                   {"ps.access", folder_.file("access")}};
                if (rank < workers && own[size_t(rank)] >= 0)
                    options.emplace_back("ps.token.file",
                                         folder_.file(std::to_string(own[size_t(rank)])));
                if (restores) options.emplace_back("checkpoint.restore", "yes");
                return options;
            },
            [&](int rank, dtrain_context_t *, dtrain_comm_t *comm) { body(rank, comm); });
    }
    bool restores = false;

  private:
    void write(const std::string &name, const std::string &text) {
        FILE *file = std::fopen(folder_.file(name).c_str(), "w");
        REQUIRE(file != nullptr);
        std::fputs(text.c_str(), file);
        std::fclose(file);
        REQUIRE(chmod(folder_.file(name).c_str(), 0600) == 0);
    }
    TemporaryFolder folder_;
};

dtrain_table_params_t dense(uint32_t consistency = DTRAIN_ASYNC) {
    dtrain_table_params_t params;
    DTRAIN_INIT(&params);
    params.dtype = DTRAIN_F32;
    params.length = length;
    params.consistency = consistency;
    return params;
}

dtrain_table_t *create(dtrain_comm_t *comm, const char *name, const dtrain_table_params_t &params) {
    dtrain_table_t *table = nullptr;
    OK(dtrain_table_create(comm, name, &params, &table));
    return table;
}

bool says(const std::string &part) {
    const bool found = last_error().find(part) != std::string::npos;
    if (!found)
        std::fprintf(stderr, "\"%s\" is not in \"%s\"\n", part.c_str(), last_error().c_str());
    return found;
}

// The error says which right, table, server and worker; never a token.
void check_refused(dtrain_status_t got, int rank, const char *right, const char *name) {
    FAILS(DTRAIN_ERR_AUTH, got);
    REQUIRE(says("worker " + std::to_string(rank) + " may not " + right + " it"));
    REQUIRE(says(name));
    REQUIRE(says("server "));
    REQUIRE(last_error().find("the-token") == std::string::npos);
}

void barrier(dtrain_comm_t *comm) { OK(dtrain_barrier(comm, nullptr, nullptr)); }

void each_may_do_what_its_token_grants(void **) {
    Job job;
    job.run([](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = create(comm, "weights", dense());
        std::vector<float> ones(length, 1), values(length, -1);
        const auto push = [&] {
            return dtrain_table_push(table, 0, length, ones.data(), nullptr, nullptr);
        };
        const auto pull = [&] {
            return dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr);
        };
        const auto both = [&] {
            return dtrain_table_push_pull(table, 0, length, ones.data(), values.data(), nullptr,
                                          nullptr);
        };
        const auto set = [&] {
            return dtrain_table_set(table, 0, length, ones.data(), nullptr, nullptr);
        };
        if (rank == 1) {
            check_refused(push(), rank, "push to", "weights");
            check_refused(set(), rank, "push to", "weights");
            check_refused(both(), rank, "push to", "weights");
            check_refused(dtrain_checkpoint_save(&table, 1, 5, nullptr, nullptr), rank,
                          "checkpoint", "weights");
        }
        if (rank == 2) {
            check_refused(pull(), rank, "pull from", "weights");
            check_refused(both(), rank, "pull from", "weights");
            REQUIRE(values[0] == -1);
            OK(push());
        }
        barrier(comm);
        if (rank != 2) {
            OK(pull());
            REQUIRE(values[0] == 1 && values[length - 1] == 1); // of rank 2 alone
        }
        barrier(comm);
        if (rank == 0) {
            OK(both());
            REQUIRE(values[0] == 2);
            OK(dtrain_checkpoint_save(&table, 1, 7, nullptr, nullptr));
        }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
    // Servers that start anew, with the checkpoint.
    job.restores = true;
    job.run([](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = create(comm, "weights", dense());
        std::vector<float> values(length, -1);
        dtrain_status_t s = dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr);
        if (rank == 2)
            check_refused(s, rank, "pull from", "weights");
        else
            OK(s);
        REQUIRE(values[0] == (rank == 2 ? -1 : 2));
        barrier(comm);
        s = dtrain_table_push(table, 0, length, values.data(), nullptr, nullptr);
        if (rank == 1)
            check_refused(s, rank, "push to", "weights");
        else
            OK(s);
        OK(dtrain_table_destroy(table));
    });
}

void rows_too(void **) {
    Job().run([](int rank, dtrain_comm_t *comm) {
        dtrain_table_params_t params = dense();
        params.length = 0;
        params.dim = 4;
        dtrain_table_t *table = create(comm, "weights of rows", params);
        const uint64_t keys[] = {1, 1ull << 40, 77};
        std::vector<float> ones(12, 1), values(12, -1);
        uint64_t count = 0;
        const auto push = dtrain_table_push_rows(table, keys, 3, ones.data(), nullptr, nullptr);
        if (rank == 1)
            check_refused(push, rank, "push to", "weights of rows");
        else
            OK(push);
        if (rank == 1)
            check_refused(dtrain_table_erase_rows(table, keys, 3, nullptr, nullptr), rank,
                          "push to", "weights of rows");
        barrier(comm);
        const auto pull = dtrain_table_pull_rows(table, keys, 3, values.data(), nullptr, nullptr);
        if (rank == 2) {
            check_refused(pull, rank, "pull from", "weights of rows");
            check_refused(dtrain_table_count_rows(table, &count, nullptr, nullptr), rank,
                          "pull from", "weights of rows");
        } else {
            OK(pull);
            OK(dtrain_table_count_rows(table, &count, nullptr, nullptr));
            REQUIRE(count == 3 && values[0] == 2);
        }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}

// Under BSP the clocks of all must go on.
void a_refused_push_stops_no_clock(void **) {
    Job().run([](int rank, dtrain_comm_t *comm) {
        dtrain_table_t *table = create(comm, "weights", dense(DTRAIN_BSP));
        std::vector<float> ones(length, 1), values(length, -1);
        for (int clock = 1; clock <= 3; clock++) {
            const auto s = dtrain_table_push(table, 0, length, ones.data(), nullptr, nullptr);
            if (rank == 1)
                check_refused(s, rank, "push to", "weights");
            else
                OK(s);
            OK(dtrain_table_clock(table, nullptr, nullptr));
            if (rank == 2) continue;
            OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
            REQUIRE(values[0] == 2 * clock);
        }
        barrier(comm);
        OK(dtrain_table_destroy(table));
    });
}

void fails_for_all(const std::vector<int> &own, const char *name, const char *text) {
    Job().run(
        [&](int, dtrain_comm_t *comm) {
            const dtrain_table_params_t params = dense();
            dtrain_table_t *table = nullptr;
            FAILS(DTRAIN_ERR_AUTH, dtrain_table_create(comm, name, &params, &table));
            REQUIRE(table == nullptr && says(text) && says(name));
            table = create(comm, "free", params); // comm is as before, and this one is everybody's
            std::vector<float> values(length, 1);
            OK(dtrain_table_push(table, 0, length, values.data(), nullptr, nullptr));
            OK(dtrain_table_pull(table, 0, length, values.data(), nullptr, nullptr));
            OK(dtrain_table_destroy(table));
        },
        own);
}

void somebody_must_have_the_right_to_create(void **) {
    fails_for_all({1, 2, 1}, "weights", "may not create it");
    fails_for_all({0, 0, 0}, "others", "may not create it");
}

// A worker that has no right on a table does not get it, and so nobody does.
void who_has_no_right_is_named(void **) {
    fails_for_all({0, 3, 2}, "weights", "worker 1 may not open it");
    fails_for_all({0, 1, -1}, "weights", "worker 2 may not open it");
}

void a_file_that_is_none_is_named(void **) {
    Job().run(
        [](int rank, dtrain_comm_t *comm) {
            const dtrain_table_params_t params = dense();
            dtrain_table_t *table = nullptr;
            const auto s = dtrain_table_create(comm, "free", &params, &table);
            REQUIRE(s == DTRAIN_ERR_IO || s == DTRAIN_ERR_NOT_FOUND || s == DTRAIN_ERR_CONFIG);
            REQUIRE(rank != 2 || says("ps.token.file"));
        },
        {0, 1, 9});
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(each_may_do_what_its_token_grants),
        cmocka_unit_test(rows_too),
        cmocka_unit_test(a_refused_push_stops_no_clock),
        cmocka_unit_test(somebody_must_have_the_right_to_create),
        cmocka_unit_test(who_has_no_right_is_named),
        cmocka_unit_test(a_file_that_is_none_is_named),
    };
    return cmocka_run_group_tests_name("table_access", tests, nullptr, nullptr);
}
