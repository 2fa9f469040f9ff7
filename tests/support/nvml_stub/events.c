/* Entry points: events of GPUs. */
#include <stdlib.h>
#include <time.h>

#include "node.h"

#define MAX_EVENTS 64
#define POLL_MILLISECONDS 10 /* how often a waiting caller looks at the control file */

struct event_set {
    unsigned long long masks[MAX_GPUS]; /* what is wanted of each GPU */
    struct event_data events[MAX_EVENTS];
    unsigned first, count;
    struct event_set *next;
};

static struct event_set *sets;
int waits_to_fail, wait_failure;

void post_event(struct gpu *gpu, struct event_data event)
{
    event.device = handle_of(gpu, NULL);
    for (struct event_set *set = sets; set; set = set->next)
        if (set->masks[gpu->index] & event.type && set->count < MAX_EVENTS)
            set->events[(set->first + set->count++) % MAX_EVENTS] = event;
}

/* Where the pointer to a set is; that to NULL where there is no such set (any more). */
static struct event_set **find_set(const void *wanted)
{
    struct event_set **found = &sets;
    while (*found && *found != wanted)
        found = &(*found)->next;
    return found;
}

API int nvmlEventSetCreate(void **created)
{
    BEGIN;
    struct event_set *set = calloc(1, sizeof *set);
    if (!set)
        return UNKNOWN;
    set->next = sets;
    *created = sets = set;
    return SUCCESS;
}

API int nvmlEventSetFree(void *wanted)
{
    BEGIN;
    struct event_set **place = find_set(wanted), *set = *place;
    if (!set)
        return INVALID_ARGUMENT;
    *place = set->next;
    free(set);
    return SUCCESS;
}

API int nvmlDeviceGetSupportedEventTypes(void *handle, unsigned long long *types)
{
    BEGIN_ON(handle);
    *types = SINGLE_BIT_ECC | DOUBLE_BIT_ECC | XID_CRITICAL | 0x10;
    return SUCCESS;
}

API int nvmlDeviceRegisterEvents(void *handle, unsigned long long types, void *wanted)
{
    BEGIN_ON(handle);
    struct event_set *set = *find_set(wanted);
    if (!set || on.instance)
        return set ? NOT_SUPPORTED : INVALID_ARGUMENT;
    set->masks[on.gpu->index] |= types;
    return SUCCESS;
}

static int take_event(const char *function, const void *wanted, struct event_data *event)
{
    LOCKED;
    int failure = begin(function);
    struct event_set *set = *find_set(wanted);
    if (failure || !set)
        return failure ? failure : INVALID_ARGUMENT;
    if (waits_to_fail > 0) {
        waits_to_fail--;
        return wait_failure;
    }
    if (!set->count)
        return TIMEOUT;
    *event = set->events[set->first];
    set->first = (set->first + 1) % MAX_EVENTS;
    set->count--;
    return SUCCESS;
}

API int nvmlEventSetWait_v2(void *wanted, struct event_data *event, unsigned milliseconds)
{
    const struct timespec pause = {.tv_nsec = POLL_MILLISECONDS * 1000000};
    int result = take_event(__func__, wanted, event);
    for (unsigned waited = 0; result == TIMEOUT && waited < milliseconds; waited += POLL_MILLISECONDS) {
        nanosleep(&pause, NULL);
        result = take_event(__func__, wanted, event);
    }
    return result;
}
