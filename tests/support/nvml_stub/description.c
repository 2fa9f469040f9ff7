/* Reads the file that NVML_STUB_NODE names into `node`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "node.h"

struct node node;

static void set_bus(struct gpu *gpu, const char *text)
{
    sscanf(text, "%x:%x:%x", &gpu->domain, &gpu->bus, &gpu->device);
}

static int set_key(struct gpu *gpu, char *word)
{
    char *value = strchr(word, '=');
    if (!value)
        return -1;
    *value++ = '\0';
    if (!strcmp(word, "bus"))
        set_bus(gpu, value);
    else if (!strcmp(word, "numa"))
        gpu->numa = atoi(value);
    else if (!strcmp(word, "sw"))
        gpu->pci_switch = atoi(value);
    else if (!strcmp(word, "board"))
        gpu->board = atoi(value);
    else if (!strcmp(word, "minor"))
        gpu->minor = atoi(value);
    else if (!strcmp(word, "mem"))
        gpu->memory_mib = (unsigned)atoi(value);
    else if (!strcmp(word, "mig"))
        gpu->is_split = !strcmp(value, "on");
    else if (!strcmp(word, "uuid"))
        snprintf(gpu->uuid, sizeof gpu->uuid, "%s", value);
    else if (!strcmp(word, "name")) {
        snprintf(gpu->name, sizeof gpu->name, "%s", value);
        for (char *c = gpu->name; *c; c++)
            if (*c == '_')
                *c = ' ';
    } else if (strcmp(word, "serial") && strcmp(word, "class"))
        return -1;
    return 0;
}

/* gpu MODEL [key=value ...] */
static int add_gpu(int count, char *words[])
{
    const struct model *model = count > 1 ? model_named(words[1]) : NULL;
    if (!model || node.gpu_count >= MAX_GPUS)
        return -1;
    struct gpu *gpu = &node.gpus[node.gpu_count];
    *gpu = (struct gpu){.index = node.gpu_count, .minor = node.gpu_count, .numa = -1, .board = -1, .pci_switch = -1};
    gpu->model = model;
    gpu->memory_mib = model->memory_mib;
    gpu->bus = (0x10 + 3 * (unsigned)gpu->index % 0xe0);
    snprintf(gpu->name, sizeof gpu->name, "%s", model->product);
    make_uuid(gpu->uuid, "GPU", 1000 + (unsigned)gpu->index);
    node.gpu_count++;
    for (int i = 2; i < count; i++) {
        char word[160]; /* a copy, for `gpus` reads the words again */
        snprintf(word, sizeof word, "%s", words[i]);
        if (set_key(gpu, word))
            return -1;
    }
    return 0;
}

/* gpus N MODEL [key=value ...] */
static int add_gpus(int count, char *words[])
{
    for (int i = 0, wanted = count > 2 ? atoi(words[1]) : -1; i < wanted || wanted < 0; i++)
        if (wanted < 0 || add_gpu(count - 1, words + 1))
            return -1;
    return 0;
}

static unsigned free_id(const struct gpu *gpu, unsigned first)
{
    for (unsigned i = 0; i < gpu->instance_count; i++)
        if (gpu->instances[i].profile && gpu->instances[i].id == first)
            return free_id(gpu, first + 1);
    return first;
}

static int add_instance(struct gpu *gpu, const char *name)
{
    unsigned number = gpu->instance_count;
    if (number >= MAX_INSTANCES)
        return -1;
    struct instance *instance = &gpu->instances[number];
    *instance = (struct instance){0};
    if (strcmp(name, "-")) {
        instance->profile = profile_named(gpu->model, name, &instance->compute_slices);
        if (!instance->profile)
            return -1;
        instance->id = free_id(gpu, instance->profile->first_id);
        snprintf(instance->name, sizeof instance->name, "%s", name);
        make_uuid(instance->uuid, "MIG", 900000 + (unsigned)gpu->index * 64 + gpu->layout * 100000 + number);
    }
    gpu->instance_count++;
    return 0;
}

int add_instances(struct gpu *gpu, const char *name, int count)
{
    for (int i = 0; i < count; i++)
        if (add_instance(gpu, name))
            return -1;
    return 0;
}

/* mig GPU PROFILE [COUNT] */
static int add_mig(int count, char *words[])
{
    struct gpu *gpu = count > 2 ? gpu_named(words[1]) : NULL;
    return gpu && gpu->is_split ? add_instances(gpu, words[2], count > 3 ? atoi(words[3]) : 1) : -1;
}

static void add_links(struct gpu *gpu, int peer, int count)
{
    for (int i = 0; i < count && gpu->link_count < MAX_LINKS; i++)
        gpu->peers[gpu->link_count++] = peer;
}

/* nvlink I J N | nvlink I|* switch N */
static int add_nvlink(int count, char *words[])
{
    if (count < 4)
        return -1;
    struct gpu *one = gpu_named(words[1]), *other = gpu_named(words[2]);
    int is_all = !strcmp(words[1], "*"), to_switch = !strcmp(words[2], "switch"), links = atoi(words[3]);
    if ((!one && !is_all) || (!other && !to_switch))
        return -1;
    for (int i = 0; i < node.gpu_count; i++)
        if (is_all || &node.gpus[i] == one)
            add_links(&node.gpus[i], to_switch ? SWITCH : other->index, links);
    if (other && one)
        add_links(other, one->index, links);
    return 0;
}

/* topo I J LEVEL */
static int set_level(int count, char *words[])
{
    static const char *const names[] = {"INTERNAL", "SINGLE", "MULTIPLE", "HOSTBRIDGE", "NODE", "SYSTEM"};
    struct gpu *one = count > 3 ? gpu_named(words[1]) : NULL, *other = count > 3 ? gpu_named(words[2]) : NULL;
    for (int level = 0; one && other && level < 6; level++)
        if (!strcasecmp(words[3], names[level])) {
            node.levels[one->index][other->index] = node.levels[other->index][one->index] = (signed char)(level * 10);
            return 0;
        }
    return -1;
}

/* fabric HEX32 CLIQUE */
static int set_fabric(int count, char *words[])
{
    if (count < 3 || strlen(words[1]) != 2 * sizeof node.cluster)
        return -1;
    for (size_t i = 0; i < sizeof node.cluster; i++)
        if (sscanf(words[1] + 2 * i, "%2hhx", &node.cluster[i]) != 1)
            return -1;
    node.has_fabric = 1;
    node.clique = (unsigned)atoi(words[2]);
    return 0;
}

static int describe(int count, char *words[])
{
    if (!strcmp(words[0], "gpu"))
        return add_gpu(count, words);
    if (!strcmp(words[0], "gpus"))
        return add_gpus(count, words);
    if (!strcmp(words[0], "mig"))
        return add_mig(count, words);
    if (!strcmp(words[0], "nvlink"))
        return add_nvlink(count, words);
    if (!strcmp(words[0], "topo"))
        return set_level(count, words);
    if (!strcmp(words[0], "fabric"))
        return set_fabric(count, words);
    if (!strcmp(words[0], "driver") && count > 1)
        return snprintf(node.driver, sizeof node.driver, "%s", words[1]) < 0;
    if (!strcmp(words[0], "cuda") && count > 1)
        return (node.cuda = atoi(words[1])) <= 0;
    return strcmp(words[0], "nvml") ? act(count, words) : 0;
}

int read_description(void)
{
    const char *path = file_named("NVML_STUB_NODE", "/driver-root/node.conf");
    FILE *file = path ? fopen(path, "r") : NULL;
    char *line = NULL, *words[MAX_WORDS];
    size_t size = 0;
    int result = 0;
    memset(&node, 0, sizeof node);
    memset(node.levels, -1, sizeof node.levels);
    snprintf(node.driver, sizeof node.driver, "550.90.07");
    node.cuda = 12040;
    forget_control();
    if (!file) {
        fprintf(stderr, "nvml stub: no node can be read: NVML_STUB_NODE names none, and there is no /driver-root/node.conf\n");
        return -1;
    }
    for (int number = 1; !result && getline(&line, &size, file) >= 0; number++) {
        int count = split_words(line, words);
        if (count && describe(count, words)) {
            fprintf(stderr, "nvml stub: %s: line %d (%s) makes no sense\n", path, number, words[0]);
            result = -1;
        }
    }
    free(line);
    fclose(file);
    return result;
}
