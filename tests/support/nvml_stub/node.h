/* The described node, and what every entry point begins with. */
#pragma once

#include "abi.h"

#define MAX_GPUS 64
#define MAX_INSTANCES 8
#define MAX_LINKS 36
#define MAX_PROCESSES 16
#define MAX_WORDS 24

#define API __attribute__((visibility("default")))

struct profile {
    const char *name;
    unsigned first_id, slices, memory_mib, multiprocessors, copy, decoder, encoder, jpeg, ofa;
};

struct model {
    const char *key; /* as model_named compares names */
    const char *product;
    unsigned memory_mib, major, minor;
    const struct profile *profiles;
    unsigned profile_count;
};

struct instance { /* one MIG device: a GPU instance with its one compute instance */
    const struct profile *profile; /* NULL: nothing at this position */
    unsigned id, compute_slices;
    char uuid[96], name[32];
};

struct process {
    unsigned pid, gpu_instance;
    long mib;
};

struct gpu {
    int index, minor, numa, board, pci_switch;
    const struct model *model;
    char uuid[96], name[96];
    unsigned domain, bus, device, memory_mib;
    int is_split, is_lost;
    int recovery; /* the action that the driver asks for, plus 1; 0: it does not tell */
    unsigned layout; /* counts the changes of the MIG layout */
    struct instance instances[MAX_INSTANCES];
    unsigned instance_count;
    int peers[MAX_LINKS]; /* index of the GPU at the other end of each NVLink, or SWITCH */
    unsigned link_count;
    struct process processes[MAX_PROCESSES];
    unsigned process_count;
};

enum { SWITCH = -1 };

struct node {
    char driver[80];
    int cuda;
    struct gpu gpus[MAX_GPUS];
    int gpu_count;
    signed char levels[MAX_GPUS][MAX_GPUS]; /* given by `topo`; -1: not given */
    int has_fabric;
    unsigned char cluster[16];
    unsigned clique;
};

extern struct node node;
extern int users; /* connected by nvmlInit */

/* models.c, words.c: NULL and 0 where there is none. */
const struct model *model_named(const char *name);
const struct profile *profile_named(const struct model *model, const char *name, unsigned *compute_slices);
int split_words(char *line, char *words[MAX_WORDS]);
const char *file_named(const char *variable, const char *usual);
void make_uuid(char *text, const char *prefix, unsigned seed);

/* description.c, control.c: 0, or -1 after a word on stderr. */
int read_description(void);
int add_instances(struct gpu *gpu, const char *profile, int count);
struct gpu *gpu_named(const char *text);
int act(int count, char *words[]);
void skip_control(void);
void forget_control(void);

/* events.c */
void post_event(struct gpu *gpu, struct event_data event);
extern int waits_to_fail, wait_failure;

/* What a handle stands for. A handle is a number, so that one of a MIG layout that is gone is told from a valid one. */
struct target {
    struct gpu *gpu;
    struct instance *instance; /* NULL: the whole GPU */
};

void *handle_of(const struct gpu *gpu, const struct instance *instance);
int find_target(void *handle, struct target *found);

/* system.c: reads the control file, then answers whether this call is to fail. */
int begin(const char *function);
int begin_on(const char *function, void *handle, struct target *found);
int lock(void);
void unlock(const int *guard);

#define LOCKED __attribute__((cleanup(unlock), unused)) int guard_ = lock()
#define BEGIN                                                                                                          \
    LOCKED;                                                                                                            \
    int failure_ = begin(__func__);                                                                                    \
    if (failure_)                                                                                                      \
        return failure_
#define BEGIN_ON(handle)                                                                                               \
    LOCKED;                                                                                                            \
    struct target on;                                                                                                  \
    int failure_ = begin_on(__func__, handle, &on);                                                                    \
    if (failure_)                                                                                                      \
        return failure_
