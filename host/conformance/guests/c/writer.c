#include "msgpack.h"

// room makes room for n more bytes.
static uint8_t *room(writer *w, uint32_t n) {
	if (w->n + n > w->cap) {
		uint32_t cap = w->cap * 2 > w->n + n ? w->cap * 2 : w->n + n + 512;
		uint8_t *b = alloc(cap);
		memcpy(b, w->b, w->n);
		w->b = b;
		w->cap = cap;
	}
	uint8_t *at = w->b + w->n;
	w->n += n;
	return at;
}

// put writes a first byte and n bytes of a number behind it.
static void put(writer *w, uint8_t c, uint64_t v, int n) {
	uint8_t *p = room(w, n + 1);
	*p = c;
	for (; n; n--, v >>= 8) p[n] = v;
}

void put_nil(writer *w) { put(w, 0xc0, 0, 0); }
void put_bool(writer *w, bool b) { put(w, b ? 0xc3 : 0xc2, 0, 0); }

void put_int(writer *w, int64_t i) {
	if (i >= -32 && i < 128) put(w, i, 0, 0);
	else if (i < 0)
		i >= INT8_MIN ? put(w, 0xd0, i, 1) : i >= INT16_MIN ? put(w, 0xd1, i, 2) : i >= INT32_MIN ? put(w, 0xd2, i, 4) : put(w, 0xd3, i, 8);
	else
		i <= UINT8_MAX ? put(w, 0xcc, i, 1) : i <= UINT16_MAX ? put(w, 0xcd, i, 2) : i <= UINT32_MAX ? put(w, 0xce, i, 4) : put(w, 0xcf, i, 8);
}

void put_float(writer *w, double f) {
	uint64_t bits;
	memcpy(&bits, &f, 8);
	put(w, 0xcb, bits, 8);
}

// head writes the head of what has a length.
static void head(writer *w, uint32_t n, uint8_t fixed, uint32_t most, uint8_t wide) {
	if (n <= most) put(w, fixed | n, 0, 0);
	else if (n <= UINT16_MAX) put(w, wide, n, 2);
	else put(w, wide + 1, n, 4);
}

void put_string(writer *w, const void *s, uint32_t n) {
	if (n > 31 && n <= UINT8_MAX) put(w, 0xd9, n, 1);
	else head(w, n, 0xa0, 31, 0xda);
	memcpy(room(w, n), s, n);
}

void put_text(writer *w, const char *s) { put_string(w, s, strlen(s)); }
void put_array(writer *w, uint32_t n) { head(w, n, 0x90, 15, 0xdc); }

void put_raw(writer *w, value v) {
	if (v.type == ABSENT) {
		put_nil(w);
		return;
	}
	uint32_t n = next(v.raw) - v.raw;
	memcpy(room(w, n), v.raw, n);
}

void put_plain(writer *w, value v) {
	switch (v.type) {
	case BOOL: put_bool(w, v.i); return;
	case INT: put_int(w, v.i); return;
	case FLOAT: put_float(w, v.f); return;
	case STRING: put_string(w, v.in, v.len); return;
	case ARRAY:
	case MAP: {
		uint64_t n = v.type == MAP ? 2ull * v.len : v.len;
		if (v.type == MAP) head(w, v.len, 0x80, 15, 0xde);
		else put_array(w, v.len);
		for (const uint8_t *p = v.in; n; n--, p = next(p)) put_plain(w, read(p));
		return;
	}
	default: put_nil(w);
	}
}

void begin(writer *w) {
	w->open[w->depth].at = w->n;
	w->open[w->depth++].keys = 0;
	put(w, 0xde, 0, 2);
}

void key(writer *w, const char *s) {
	w->open[w->depth - 1].keys++;
	put_text(w, s);
}

void end(writer *w) {
	w->depth--;
	uint32_t at = w->open[w->depth].at, keys = w->open[w->depth].keys;
	w->b[at + 1] = keys >> 8;
	w->b[at + 2] = keys;
}
