// The host functions of abi/ABI.md, sections 5 and 6.
#ifndef HOST_H
#define HOST_H

#include <stdint.h>

#define IMPORT(name) __attribute__((import_module("reconciler_v1"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))

typedef int64_t operation(const void *req, uint32_t req_len, void *dst, uint32_t dst_cap);

IMPORT(api_get) operation api_get;
IMPORT(api_list) operation api_list;
IMPORT(api_create) operation api_create;
IMPORT(api_update) operation api_update;
IMPORT(api_patch) operation api_patch;
IMPORT(api_apply) operation api_apply;
IMPORT(api_delete) operation api_delete;
IMPORT(cache_get) operation cache_get;
IMPORT(cache_list) operation cache_list;
IMPORT(event_record) operation event_record;
IMPORT(config_get) operation config_get;
// No host has this one: it is linked to a stub that answers UNSUPPORTED.
IMPORT(teleport) operation teleport;

IMPORT(take) int32_t take(void *dst, uint32_t off, uint32_t cap);
IMPORT(log) void host_log(int32_t level, const void *msg, uint32_t len);
IMPORT(log_level) int32_t log_level(void);
IMPORT(metric) int32_t metric(int32_t kind, const void *name, uint32_t len, double value);
IMPORT(cancelled) int32_t cancelled(void);
IMPORT(budget) int64_t budget(int32_t kind);

// Clocks and random numbers are those of WASI, which needs no libc.
#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name)))

enum { REALTIME, MONOTONIC };

WASI(clock_time_get) int32_t clock_time_get(int32_t clock, int64_t precision, int64_t *ns);
WASI(random_get) int32_t random_get(void *dst, uint32_t len);

#endif
