#include "memory.h"

#define PAGE 65536u

extern uint8_t __heap_base; // set by the linker: the first byte that is free

static uint32_t block_cap; // of the request block, which starts at the heap
static uint32_t arena_at;  // the next free byte of the arena

static uint32_t align8(uint32_t n) { return (n + 7) & ~7u; }
static uint32_t heap(void) { return align8((uint32_t)(uintptr_t)&__heap_base); }

// have makes the memory reach to end.
static bool have(uint64_t end) {
	uint64_t pages = __builtin_wasm_memory_size(0);
	if (end <= pages * PAGE) return true;
	uint64_t more = (end - pages * PAGE + PAGE - 1) / PAGE;
	return more < 65536 && __builtin_wasm_memory_grow(0, more) != (size_t)-1;
}

uint32_t reserve(uint32_t size) {
	if (size > block_cap) {
		uint64_t cap = ((uint64_t)size + PAGE - 1) / PAGE * PAGE;
		if (!have(heap() + cap)) return 0;
		block_cap = cap;
	}
	arena_reset();
	return heap();
}

void arena_reset(void) { arena_at = heap() + block_cap; }

void *alloc(size_t n) {
	uint64_t end = (uint64_t)arena_at + n;
	if (!have(end + 8)) __builtin_trap();
	void *p = (void *)(uintptr_t)arena_at;
	arena_at = align8(end);
	return p;
}

void *memcpy(void *dst, const void *src, size_t n) {
	uint8_t *d = dst;
	const uint8_t *s = src;
	while (n--) *d++ = *s++;
	return dst;
}

void *memset(void *dst, int c, size_t n) {
	uint8_t *d = dst;
	while (n--) *d++ = c;
	return dst;
}

int memcmp(const void *a, const void *b, size_t n) {
	const uint8_t *x = a, *y = b;
	for (; n; n--, x++, y++)
		if (*x != *y) return *x - *y;
	return 0;
}

size_t strlen(const char *s) {
	size_t n = 0;
	while (s[n]) n++;
	return n;
}
