/* Writes recipes of workers and servers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recipes.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

/* The DTRAIN_ variables of this process go to processes on other hosts, too. */
static void pass_variables(const options_t *o, recipe_t *recipe, bool elsewhere) {
    for (char **line = environ; elsewhere && *line != NULL; line++)
        if (strncmp(*line, "DTRAIN_", 7) == 0 && strchr(*line, '=') != NULL)
            texts_add(&recipe->variables, *line);
    for (size_t i = 0; i < o->passed.count; i++) texts_add(&recipe->variables, o->passed.list[i]);
}

static bool is_set(const recipe_t *recipe, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < recipe->variables.count; i++)
        if (strncmp(recipe->variables.list[i], name, length) == 0 &&
            recipe->variables.list[i][length] == '=')
            return true;
    return getenv(name) != NULL;
}

static void describe_elastic(recipe_t *recipe, const options_t *o, const common_t *common) {
    recipe_set(recipe, "DTRAIN_ELASTIC", "yes");
    recipe_set_number(recipe, "DTRAIN_ELASTIC_MIN", o->elastic_min);
    recipe_set_number(recipe, "DTRAIN_ELASTIC_MAX", o->elastic_max);
    if (common->loopback && !is_set(recipe, "DTRAIN_LISTEN_ADDRESS"))
        recipe_set(recipe, "DTRAIN_LISTEN_ADDRESS", "127.0.0.1");
}

static void describe_worker(const process_t *p, recipe_t *recipe, const common_t *common) {
    if (p->newcomer)
        recipe_set(recipe, "DTRAIN_RANK", "new"); /* it is told its rank when it is taken in */
    else
        recipe_set_number(recipe, "DTRAIN_RANK", p->index);
    recipe_set_number(recipe, "DTRAIN_LOCAL_RANK", p->place.local_rank);
    recipe_set_number(recipe, "DTRAIN_LOCAL_SIZE", p->place.local_size);
    if (!p->newcomer && p->index == 0 && p->host == NULL && common->listener >= 0)
        recipe_set_number(recipe, "DTRAIN_LISTEN_FD", common->listener);
}

static void describe_place(process_t *p, const options_t *o, const common_t *common) {
    static const char *const own[] = {"DTRAIN_RANK",     "DTRAIN_LOCAL_RANK", "DTRAIN_LOCAL_SIZE",
                                      "DTRAIN_SIZE",     "DTRAIN_SERVERS",    "DTRAIN_SERVER_INDEX",
                                      "DTRAIN_LISTEN_FD"};
    recipe_t *recipe = &p->recipe;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) recipe_set(recipe, own[i], NULL);
    recipe_set(recipe, "DTRAIN_RENDEZVOUS", common->url);
    recipe_set(recipe, "DTRAIN_ROLE", p->server ? "server" : "worker");
    if (!p->newcomer) {
        recipe_set_number(recipe, "DTRAIN_SIZE", common->workers);
        recipe_set_number(recipe, "DTRAIN_SERVERS", o->servers);
    }
    if (o->mixed) recipe_set(recipe, "DTRAIN_PS_SERVE", "yes");
    if (o->elastic_max > 0) describe_elastic(recipe, o, common);
    if (p->host == NULL && common->secret_path[0] != 0)
        recipe_set(recipe, "DTRAIN_SECRET_FILE", common->secret_path);
    if (p->server)
        recipe_set_number(recipe, "DTRAIN_SERVER_INDEX", p->index);
    else
        describe_worker(p, recipe, common);
}

void recipe_write(process_t *p, const options_t *o, const common_t *common) {
    recipe_t *recipe = &p->recipe;
    pass_variables(o, recipe, p->host != NULL);
    describe_place(p, o, common);
    if (p->host != NULL) recipe->directory = strdup(common->directory);
    if (!p->server) {
        for (char **word = o->program; *word != NULL; word++) texts_add(&recipe->arguments, *word);
        return;
    }
    recipe->beside = o->server_program == NULL;
    texts_add(&recipe->arguments, recipe->beside ? "dtrain-server" : o->server_program);
}
