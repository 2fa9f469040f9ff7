/* What happens to the node: lines of the control file, and of the description. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node.h"

#define MAX_RULES 32

enum kind { FAIL, AT };

static struct rule {
    enum kind kind;
    char function[64];
    int code;       /* of FAIL */
    struct gpu *on; /* of FAIL; NULL: any */
    char line[160]; /* of AT */
} rules[MAX_RULES];
static int rule_count;
static off_t position; /* how far the control file has been read */

struct gpu *gpu_named(const char *text)
{
    char *end;
    long index = strtol(text, &end, 10);
    for (int i = 0; i < node.gpu_count; i++)
        if (!strcmp(node.gpus[i].uuid, text) || (!*end && end != text && index == i))
            return &node.gpus[i];
    return NULL;
}

static int split_gpu(struct gpu *gpu, int count, char *words[])
{
    gpu->is_split = count == 0 || strcmp(words[0], "off");
    gpu->instance_count = gpu->process_count = 0;
    gpu->layout++;
    for (int i = 0; gpu->is_split && i < count; i++)
        if (add_instances(gpu, words[i], 1))
            return -1;
    return 0;
}

static int add_process(struct gpu *gpu, int count, char *words[])
{
    if (count < 2 || gpu->process_count >= MAX_PROCESSES)
        return -1;
    gpu->processes[gpu->process_count++] = (struct process){
        .pid = (unsigned)atoi(words[0]),
        .mib = atol(words[1]),
        .gpu_instance = count > 2 ? (unsigned)atoi(words[2]) : NO_INSTANCE,
    };
    return 0;
}

static int add_rule(int count, char *words[])
{
    struct rule *rule = &rules[rule_count];
    if (count < 3 || rule_count >= MAX_RULES)
        return -1;
    *rule = (struct rule){.kind = strcmp(words[0], "at") ? FAIL : AT};
    snprintf(rule->function, sizeof rule->function, "%s", words[1]);
    if (rule->kind == FAIL) {
        rule->code = atoi(words[2]);
        rule->on = count > 3 ? gpu_named(words[3]) : NULL;
        if (count > 3 && !rule->on)
            return -1;
    }
    for (int i = 2; rule->kind == AT && i < count; i++) {
        size_t length = strlen(rule->line);
        snprintf(rule->line + length, sizeof rule->line - length, "%s ", words[i]);
    }
    rule_count++;
    return 0;
}

static void drop_rules(const char *function)
{
    int kept = 0;
    for (int i = 0; i < rule_count; i++)
        if (rules[i].kind != FAIL || strcmp(rules[i].function, function))
            rules[kept++] = rules[i];
    rule_count = kept;
}

static int act_on_gpu(struct gpu *gpu, int count, char *words[])
{
    struct event_data event = {.gpu_instance = NO_INSTANCE, .compute_instance = NO_INSTANCE};
    if (!strcmp(words[0], "lost") || !strcmp(words[0], "restore")) {
        gpu->is_lost = !strcmp(words[0], "lost");
        return 0;
    }
    if (!strcmp(words[0], "split"))
        return split_gpu(gpu, count - 2, words + 2);
    if (count < 3)
        return -1;
    if (!strcmp(words[0], "process"))
        return add_process(gpu, count - 2, words + 2);
    if (!strcmp(words[0], "recovery")) {
        gpu->recovery = atoi(words[2]) + 1;
        return 0;
    }
    if (!strcmp(words[0], "xid")) {
        event.type = XID_CRITICAL;
        event.data = strtoull(words[2], NULL, 0);
        if (count > 3)
            event.gpu_instance = (unsigned)atoi(words[3]);
        if (count > 4)
            event.compute_instance = (unsigned)atoi(words[4]);
    } else if (!strcmp(words[0], "ecc"))
        event.type = strcmp(words[2], "double") ? SINGLE_BIT_ECC : DOUBLE_BIT_ECC;
    else
        return -1;
    post_event(gpu, event);
    return 0;
}

int act(int count, char *words[])
{
    if (count < 2)
        return -1;
    if (!strcmp(words[0], "fail") || !strcmp(words[0], "at"))
        return add_rule(count, words);
    if (!strcmp(words[0], "unfail")) {
        drop_rules(words[1]);
        return 0;
    }
    if (!strcmp(words[0], "waitfail")) {
        wait_failure = atoi(words[1]);
        waits_to_fail = count > 2 ? atoi(words[2]) : 1;
        return 0;
    }
    struct gpu *gpu = gpu_named(words[1]);
    return gpu ? act_on_gpu(gpu, count, words) : -1;
}

static void act_on_line(char *line)
{
    char *words[MAX_WORDS];
    int count = split_words(line, words);
    if (count && act(count, words))
        fprintf(stderr, "nvml stub: control line (%s) makes no sense\n", words[0]);
}

void forget_control(void)
{
    rule_count = waits_to_fail = 0;
}

void skip_control(void)
{
    struct stat about;
    const char *path = file_named("NVML_STUB_CONTROL", "/driver-root/control");
    position = path && !stat(path, &about) ? about.st_size : 0;
}

/* A line counts once its end is there: whoever appends it may not have written it whole yet. */
static void read_control(void)
{
    const char *path = file_named("NVML_STUB_CONTROL", "/driver-root/control");
    FILE *file = path ? fopen(path, "re") : NULL;
    char *line = NULL;
    size_t size = 0;
    if (!file)
        return;
    fseeko(file, position, SEEK_SET);
    for (ssize_t length; (length = getline(&line, &size, file)) > 0 && line[length - 1] == '\n';) {
        position += length;
        act_on_line(line);
    }
    free(line);
    fclose(file);
}

static int failure_of(const char *function, const struct gpu *gpu)
{
    read_control();
    for (int i = 0; i < rule_count; i++)
        if (rules[i].kind == AT && !strcmp(rules[i].function, function)) {
            struct rule due = rules[i];
            rules[i] = rules[--rule_count];
            act_on_line(due.line);
            break;
        }
    for (int i = 0; i < rule_count; i++)
        if (rules[i].kind == FAIL && !strcmp(rules[i].function, function) && (!rules[i].on || rules[i].on == gpu))
            return rules[i].code;
    return SUCCESS;
}

int begin(const char *function)
{
    int failure = failure_of(function, NULL);
    return failure ? failure : users ? SUCCESS : UNINITIALIZED;
}

int begin_on(const char *function, void *handle, struct target *found)
{
    /* Twice: what happens just now may be the end of what the handle stands for. */
    int is_known = find_target(handle, found) == SUCCESS;
    int failure = failure_of(function, is_known ? found->gpu : NULL);
    if (failure)
        return failure;
    if (!users)
        return UNINITIALIZED;
    failure = find_target(handle, found);
    return failure ? failure : found->gpu->is_lost ? GPU_IS_LOST : SUCCESS;
}
