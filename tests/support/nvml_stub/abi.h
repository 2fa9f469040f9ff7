/* Layouts and numbers of NVML's binary interface, as far as the entry points here use them. */
#pragma once

#include <stdint.h>

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    ARGUMENT_VERSION_MISMATCH = 25,
    UNKNOWN = 999,
};

enum { SINGLE_BIT_ECC = 0x1, DOUBLE_BIT_ECC = 0x2, XID_CRITICAL = 0x8 };

/* The instance of an event that is about the whole GPU, of a process that is on no instance. */
#define NO_INSTANCE 0xFFFFFFFFu

struct pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct memory_info {
    unsigned long long total, free, used;
};

struct attributes {
    unsigned multiprocessors, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices;
    unsigned long long memory_mib;
};

struct process_info {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
};

struct event_data {
    void *device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

enum { RECOVERY_ACTION = 230 };

struct field_value {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    union {
        double floating;
        unsigned long long number;
    } value;
};

enum { FABRIC_COMPLETED = 3 };

struct fabric_info {
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
};

/* Version 2; the versions after it begin like it. */
struct fabric_info_v {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique;
    unsigned char state;
    unsigned health;
};
