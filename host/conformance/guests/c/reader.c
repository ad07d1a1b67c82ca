#include "msgpack.h"

static uint64_t big(const uint8_t *p, int n) {
	uint64_t v = 0;
	while (n--) v = v << 8 | *p++;
	return v;
}

static double real(const uint8_t *p, int n) {
	if (n == 8) {
		uint64_t bits = big(p, 8);
		double d;
		memcpy(&d, &bits, 8);
		return d;
	}
	uint32_t bits = big(p, 4);
	float f;
	memcpy(&f, &bits, 4);
	return f;
}

static value sized(type_t type, const uint8_t *p, const uint8_t *in, uint64_t len) {
	return (value){.type = type, .raw = p, .in = in, .len = len};
}

static value integer(const uint8_t *p, int64_t i) { return (value){.type = INT, .raw = p, .i = i, .f = i}; }

value read(const uint8_t *p) {
	uint8_t c = *p;
	if (c < 0x80) return integer(p, c);
	if (c < 0x90) return sized(MAP, p, p + 1, c & 15);
	if (c < 0xa0) return sized(ARRAY, p, p + 1, c & 15);
	if (c < 0xc0) return sized(STRING, p, p + 1, c & 31);
	if (c >= 0xe0) return integer(p, (int8_t)c);
	switch (c) {
	case 0xc0: return (value){.type = NIL, .raw = p};
	case 0xc2:
	case 0xc3: return (value){.type = BOOL, .raw = p, .i = c & 1};
	case 0xca: return (value){.type = FLOAT, .raw = p, .f = real(p + 1, 4)};
	case 0xcb: return (value){.type = FLOAT, .raw = p, .f = real(p + 1, 8)};
	case 0xcc: return integer(p, p[1]);
	case 0xcd: return integer(p, big(p + 1, 2));
	case 0xce: return integer(p, big(p + 1, 4));
	case 0xcf: return integer(p, big(p + 1, 8));
	case 0xd0: return integer(p, (int8_t)p[1]);
	case 0xd1: return integer(p, (int16_t)big(p + 1, 2));
	case 0xd2: return integer(p, (int32_t)big(p + 1, 4));
	case 0xd3: return integer(p, big(p + 1, 8));
	case 0xd9: return sized(STRING, p, p + 2, p[1]);
	case 0xda: return sized(STRING, p, p + 3, big(p + 1, 2));
	case 0xdb: return sized(STRING, p, p + 5, big(p + 1, 4));
	case 0xdc: return sized(ARRAY, p, p + 3, big(p + 1, 2));
	case 0xdd: return sized(ARRAY, p, p + 5, big(p + 1, 4));
	case 0xde: return sized(MAP, p, p + 3, big(p + 1, 2));
	case 0xdf: return sized(MAP, p, p + 5, big(p + 1, 4));
	}
	__builtin_trap(); // does not cross the sandbox boundary
}

// size is that of an integer or a float behind its first byte.
static int size(uint8_t c) {
	if (c < 0xc0 || c >= 0xe0) return 0;
	return c == 0xca ? 4 : c == 0xcb ? 8 : 1 << (c & 3); // cc..cf and d0..d3 are 1, 2, 4 and 8 bytes
}

const uint8_t *next(const uint8_t *p) {
	for (uint64_t left = 1; left; left--) {
		value v = read(p);
		switch (v.type) {
		case STRING: p = v.in + v.len; break;
		case ARRAY: p = v.in, left += v.len; break;
		case MAP: p = v.in, left += 2ull * v.len; break;
		case INT:
		case FLOAT: p += 1 + size(*p); break;
		default: p++;
		}
	}
	return p;
}

value get(value map, const char *key) {
	value found = {.type = ABSENT};
	if (map.type != MAP) return found;
	const uint8_t *p = map.in;
	for (uint32_t i = 0; i < map.len; i++) {
		value k = read(p);
		p = next(p);
		if (is(k, key)) found = read(p);
		p = next(p);
	}
	return found;
}

bool is(value v, const char *text) {
	return v.type == STRING && v.len == strlen(text) && memcmp(v.in, text, v.len) == 0;
}

int64_t int_of(value v) { return v.type == INT ? v.i : 0; }
bool true_of(value v) { return v.type == BOOL && v.i; }
