#include "steps.h"

#include "host.h"

void text_at(writer *w, const char *name, value v) {
	if (v.type != STRING) return;
	key(w, name);
	put_raw(w, v);
}

void put_key(writer *w, value k) {
	begin(w);
	text_at(w, "namespace", get(k, "namespace"));
	text_at(w, "name", get(k, "name"));
	end(w);
}

static void int_at(writer *w, const char *name, value v) {
	key(w, name);
	put_int(w, int_of(v));
}

static void reason(writer *w, value r) {
	begin(w);
	text_at(w, "type", get(r, "type"));
	text_at(w, "resource", get(r, "resource"));
	key(w, "ref"), put_key(w, get(r, "ref"));
	end(w);
}

static bool contains(value list, value text) {
	if (list.type != ARRAY) return false;
	const uint8_t *p = list.in;
	for (uint32_t i = 0; i < list.len; i++, p = next(p)) {
		value v = read(p);
		if (v.type == STRING && v.len == text.len && memcmp(v.in, text.in, v.len) == 0) return true;
	}
	return false;
}

static void caps(writer *w, value have, value names) {
	uint32_t n = names.type == ARRAY ? names.len : 0;
	writer m = {0};
	begin(&m);
	const uint8_t *p = names.in;
	for (uint32_t i = 0; i < n; i++, p = next(p)) {
		value name = read(p);
		m.open[0].keys++;
		put_raw(&m, name);
		put_bool(&m, contains(have, name));
	}
	end(&m);
	key(w, "caps");
	put_raw(w, read(m.b));
}

void request(writer *w, value m, value step) {
	begin(w);
	text_at(w, "id", get(m, "id"));
	text_at(w, "controller", get(m, "controller"));
	value first = get(m, "reason"), more = get(m, "reasons");
	key(w, "reason");
	reason(w, first);
	uint32_t n = more.type == ARRAY ? more.len : 0;
	key(w, "reasons");
	put_array(w, n + (first.type == MAP));
	if (first.type == MAP) reason(w, first);
	const uint8_t *p = more.in;
	for (uint32_t i = 0; i < n; i++, p = next(p)) reason(w, read(p));
	int_at(w, "dropped", get(m, "reasons_dropped"));
	int_at(w, "attempt", get(m, "attempt"));
	int_at(w, "config_gen", get(m, "config_gen"));
	int_at(w, "deadline_ms", get(m, "deadline_ms"));
	key(w, "key"), put_key(w, get(m, "key"));
	key(w, "stale"), put_bool(w, true_of(get(m, "stale")));
	key(w, "dry_run"), put_bool(w, true_of(get(m, "dry_run")));
	key(w, "object"), put_bool(w, get(m, "object").type == MAP);
	caps(w, get(m, "caps"), get(step, "caps"));
	end(w);
}

// at follows a path of keys.
static value at(value v, value path) {
	const uint8_t *p = path.in;
	for (uint32_t i = 0; path.type == ARRAY && i < path.len; i++, p = next(p)) {
		value k = read(p);
		char *name = alloc(k.len + 1);
		memcpy(name, k.in, k.len);
		name[k.len] = 0;
		v = get(v, name);
	}
	return v;
}

static void read_step(writer *w, value object, value step) {
	static const char *const names[] = {"absent", "nil", "bool", "int", "float", "string", "array", "map"};
	value v = at(object, get(step, "path")), as = get(step, "as");
	begin(w);
	key(w, "value");
	if (is(as, "type")) put_text(w, names[v.type]);
	else if (is(as, "int")) put_int(w, int_of(v));
	else if (is(as, "bool")) put_bool(w, true_of(v));
	else if (is(as, "float")) put_float(w, v.type == FLOAT || v.type == INT ? v.f : 0);
	else if (is(as, "len")) put_int(w, v.type == ARRAY || v.type == MAP ? v.len : 0);
	else v.type == STRING ? put_raw(w, v) : put_text(w, "");
	end(w);
}

static void log_step(writer *w, value step) {
	value attrs = get(step, "attrs");
	writer line = {0};
	begin(&line);
	key(&line, "msg");
	put_raw(&line, get(step, "msg"));
	const uint8_t *p = attrs.in;
	for (uint32_t i = 0; attrs.type == MAP && i < attrs.len; i++) {
		line.open[0].keys++;
		put_raw(&line, read(p));
		p = next(p);
		put_raw(&line, read(p));
		p = next(p);
	}
	end(&line);
	host_log(int_of(get(step, "level")), line.b, line.n);
	begin(w);
	end(w);
}

static void levels_step(writer *w) {
	int least = log_level(), kept = 0;
	for (int level = -4; level <= 8; level += 4) kept += level >= least;
	begin(w);
	key(w, "kept");
	put_array(w, kept);
	for (int level = -4; level <= 8; level += 4)
		if (level >= least) put_int(w, level);
	end(w);
}

static void random_step(writer *w, value step) {
	static const char digits[] = "0123456789abcdef";
	uint32_t n = int_of(get(step, "len"));
	uint8_t *b = alloc(n), *hex = alloc(2 * n);
	int32_t status = random_get(b, n);
	begin(w);
	if (status) {
		key(w, "status");
		put_int(w, status);
	} else {
		for (uint32_t i = 0; i < n; i++) hex[2 * i] = digits[b[i] >> 4], hex[2 * i + 1] = digits[b[i] & 15];
		key(w, "hex");
		put_string(w, hex, 2 * n);
	}
	end(w);
}

static void number(writer *w, const char *name, int64_t n) {
	begin(w);
	key(w, name);
	put_int(w, n);
	end(w);
}

static void metric_step(writer *w, value step) {
	value name = get(step, "name");
	number(w, "status", metric(int_of(get(step, "kind")), name.in, name.len, get(step, "value").f));
}

static int64_t read_clock(int32_t id) {
	int64_t ns = 0;
	clock_time_get(id, 1, &ns);
	return ns;
}

static void mono_step(writer *w) {
	begin(w);
	key(w, "ns");
	put_array(w, 2);
	put_int(w, read_clock(MONOTONIC));
	put_int(w, read_clock(MONOTONIC));
	end(w);
}

static void cancelled_step(writer *w) {
	begin(w);
	key(w, "cancelled");
	put_bool(w, cancelled());
	end(w);
}

// ends is a step that does not return.
static void ends(value name) {
	if (is(name, "trap")) __builtin_trap();
	if (is(name, "spin"))
		for (;;) __asm__ volatile("");
	while (is(name, "grow")) *(volatile char *)alloc(1 << 20) = 1;
}

static void step(writer *w, value message, value object, value s) {
	value name = get(s, "do");
	ends(name);
	if (is(name, "request")) request(w, message, s);
	else if (is(name, "read")) read_step(w, object, s);
	else if (is(name, "op")) operate(w, get(s, "op"), get(s, "request"));
	else if (is(name, "log")) log_step(w, s);
	else if (is(name, "levels")) levels_step(w);
	else if (is(name, "now")) number(w, "ms", read_clock(REALTIME) / 1000000);
	else if (is(name, "mono")) mono_step(w);
	else if (is(name, "random")) random_step(w, s);
	else if (is(name, "metric")) metric_step(w, s);
	else if (is(name, "cancelled")) cancelled_step(w);
	else if (is(name, "budget")) number(w, "left", budget(int_of(get(s, "kind"))));
	else {
		bool echo = is(name, "echo");
		begin(w);
		key(w, echo ? "value" : "lacks");
		put_plain(w, echo ? get(s, "value") : name);
		end(w);
	}
}

void steps(writer *w, value message, value object, value list) {
	uint32_t n = list.type == ARRAY ? list.len : 0;
	put_array(w, n);
	const uint8_t *p = list.in;
	for (uint32_t i = 0; i < n; i++, p = next(p)) step(w, message, object, read(p));
}
