// Memory without a libc: the block that the host writes requests to, and an
// arena that is empty again at the start of each entry call.
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// reserve returns the request block, of size bytes at least and 8-byte aligned,
// or 0 where there is no memory. What the arena holds is gone afterwards.
uint32_t reserve(uint32_t size);

// arena_reset frees all that alloc returned.
void arena_reset(void);

// alloc returns n bytes, 8-byte aligned. Where there are none it traps.
void *alloc(size_t n);

void *memcpy(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);

#endif
