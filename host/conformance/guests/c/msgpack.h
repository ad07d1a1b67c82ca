// The part of msgpack that crosses the sandbox boundary (abi/ABI.md, section 3): nil, bool,
// integer, float, string, array, map.
#ifndef MSGPACK_H
#define MSGPACK_H

#include "memory.h"

typedef enum { ABSENT, NIL, BOOL, INT, FLOAT, STRING, ARRAY, MAP } type_t;

// value is one value of a message. What is absent is { ABSENT }.
typedef struct {
	type_t type;
	const uint8_t *raw; // where it starts
	const uint8_t *in;  // the bytes of a string, the first element of an array or map
	uint32_t len;       // bytes of a string, elements of an array, pairs of a map
	int64_t i;          // of INT, and 1 for true
	double f;
} value;

// read reads the head of the value at p.
value read(const uint8_t *p);

// next is the byte after the value at p. The host's messages are whole, so that
// nothing is checked here.
const uint8_t *next(const uint8_t *p);

// get is the value under a key of a map, or absent. A later key wins.
value get(value map, const char *key);

bool is(value v, const char *text);
int64_t int_of(value v);
bool true_of(value v);

// writer writes one value after the other. A map is open until end: the number
// of its keys is written then.
typedef struct {
	uint8_t *b;
	uint32_t n, cap;
	struct {
		uint32_t at, keys;
	} open[16];
	int depth;
} writer;

void put_nil(writer *w);
void put_bool(writer *w, bool b);
void put_int(writer *w, int64_t i);
void put_float(writer *w, double f);
void put_text(writer *w, const char *s);
void put_string(writer *w, const void *s, uint32_t n);
void put_array(writer *w, uint32_t n);
void put_raw(writer *w, value v);
// put_plain writes v as it was understood: each part read and written again.
void put_plain(writer *w, value v);

void begin(writer *w);
void key(writer *w, const char *s);
void end(writer *w);

#endif
