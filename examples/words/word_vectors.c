/* Vectors of words from text: skip-gram with negative sampling, where a word's vector is the mean
 * of those of its parts, too. The parts of all words are rows of a sparse table.
 * usage: dtrain-run -n WORKERS -s SERVERS -- word_vectors EPOCHS TEXT PAIRS [WORD...]
 * Each worker trains on a part of the text, when it likes. At the end rank 0 tells how well the
 * vectors tell PAIRS of words that belong together from others, and what is near to each WORD.
 * SPDX-License-Identifier: Apache-2.0 */
#include "status.h"
#include "trainer.h"
#include "vectors.h"

#include <stdlib.h>

static int tell(const trainer_t *trainer, const char *pairs, char **names, int count) {
    vectors_t vectors;
    int result = vectors_pull(&vectors, trainer->text, trainer->in);
    if (result == 0) {
        for (int i = 0; i < count; i++) vectors_neighbors(&vectors, names[i]);
        const double score = vectors_score(&vectors, pairs);
        printf("pairs that are nearer than others: %.1f %%\n", 100 * score);
        result = score < 0 ? -1 : 0;
    }
    vectors_free(&vectors);
    return result;
}

static int run(dtrain_comm_t *comm, int argc, char **argv) {
    text_t text;
    trainer_t trainer = {0};
    int result = text_read(&text, argv[2]);
    if (result == 0) result = trainer_create(&trainer, &text, comm, atoi(argv[1]));
    if (result == 0) result = trainer_run(&trainer);
    if (result == 0 && trainer.rank == 0) result = tell(&trainer, argv[3], argv + 4, argc - 4);
    if (result == 0) result = trainer_destroy(&trainer);
    text_free(&text);
    return result;
}

int main(int argc, char **argv) {
    dtrain_context_t *context = NULL;
    dtrain_comm_t *comm = NULL;
    int result = -1;
    if (argc < 4 || atoi(argv[1]) < 1) {
        fprintf(stderr, "usage: word_vectors EPOCHS TEXT PAIRS [WORD...]\n");
        return EXIT_FAILURE;
    }
    if (dtrain_context_create(DTRAIN_API_VERSION, NULL, &context) != DTRAIN_OK ||
        dtrain_comm_create(context, NULL, NULL, &comm) != DTRAIN_OK)
        report("joining the job");
    else
        result = run(comm, argc, argv);
    dtrain_comm_destroy(comm);
    dtrain_context_destroy(context);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
