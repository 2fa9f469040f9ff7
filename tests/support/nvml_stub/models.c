/* The table of models. `models.inc` is made of gpushare.nvml.models, so that both drivers know the same ones. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "node.h"

#include "models.inc"

/* As gpushare.nvml.models compares names: `Tesla-T4`, `T4` and `tesla t4` are the same. */
static void plain(const char *name, char *key, size_t size)
{
    size_t length = 0;
    if (!strncasecmp(name, "nvidia-", 7) || !strncasecmp(name, "nvidia ", 7))
        name += 7;
    else if (!strncasecmp(name, "tesla-", 6) || !strncasecmp(name, "tesla ", 6))
        name += 6;
    for (; *name && length + 1 < size; name++)
        if (isalnum((unsigned char)*name))
            key[length++] = (char)tolower((unsigned char)*name);
    key[length] = '\0';
}

const struct model *model_named(const char *name)
{
    char key[64];
    plain(name, key, sizeof key);
    for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++)
        if (!strcmp(MODELS[i].key, key))
            return &MODELS[i];
    return NULL;
}

static const struct profile *exactly_named(const struct model *model, const char *name, size_t length)
{
    for (unsigned i = 0; i < model->profile_count; i++)
        if (!strncmp(model->profiles[i].name, name, length) && !model->profiles[i].name[length])
            return &model->profiles[i];
    return NULL;
}

/* `1c.3g.20gb` is a part of a `3g.20gb`; an attribute that the table lacks changes only the name. */
const struct profile *profile_named(const struct model *model, const char *name, unsigned *compute_slices)
{
    const char *whole = isdigit((unsigned char)name[0]) && !strncmp(name + 1, "c.", 2) ? name + 3 : name;
    const struct profile *found = exactly_named(model, whole, strlen(whole));
    if (!found)
        found = exactly_named(model, whole, strcspn(whole, "+-"));
    if (found)
        *compute_slices = whole == name ? found->slices : (unsigned)(name[0] - '0');
    return found;
}
