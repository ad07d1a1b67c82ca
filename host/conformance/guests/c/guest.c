// A guest of the conformance kit, written from abi/ABI.md alone: no SDK and no
// libc. ../../README.md is what it has to do.
#include "host.h"
#include "steps.h"

// pack is the place of what an entry returns. It stays until the next call.
static uint64_t pack(const writer *w) { return (uint64_t)(uintptr_t)w->b << 32 | w->n; }

// copy writes a key with the value that it has in another map, if it is there.
static void copy(writer *w, const char *name, value from) {
	value v = get(from, name);
	if (v.type == ABSENT) return;
	key(w, name);
	put_raw(w, v);
}

static void report(writer *w, const char *entry, value message, value object, value list) {
	key(w, "entry");
	put_text(w, entry);
	key(w, "steps");
	steps(w, message, object, list);
}

// tell writes the report into the log.
static void tell(writer *line) {
	end(line);
	end(line);
	host_log(0, line->b, line->n);
}

static writer telling(void) {
	writer line = {0};
	begin(&line);
	key(&line, "msg");
	put_text(&line, "report");
	key(&line, "report");
	begin(&line);
	return line;
}

static uint64_t run(const char *entry, const uint8_t *ptr) {
	value m = read(ptr), object = get(m, "object"), spec = get(object, "spec"), then = get(spec, "then");
	writer w = {0};
	begin(&w);
	key(&w, "status");
	begin(&w);
	if (object.type == MAP) {
		report(&w, entry, m, object, get(spec, "steps"));
	} else {
		key(&w, "entry"), put_text(&w, entry);
		key(&w, "steps"), put_array(&w, 1);
		request(&w, m, (value){.type = ABSENT});
	}
	end(&w);
	static const char *const keys[] = {"error", "action", "after_ms", "apply", "prune", "force"};
	for (int i = 0; i < 6; i++) copy(&w, keys[i], then);
	end(&w);
	return pack(&w);
}

EXPORT(reconciler_abi_1) void marker(void) {}

EXPORT(buffer) uint32_t buffer(uint32_t size) { return reserve(size); }

EXPORT(reconcile) uint64_t reconcile(const uint8_t *ptr, uint32_t len) {
	(void)len;
	return run("reconcile", ptr);
}

EXPORT(finalize) uint64_t finalize(const uint8_t *ptr, uint32_t len) {
	(void)len;
	return run("finalize", ptr);
}

EXPORT(error_policy) uint64_t error_policy(const uint8_t *ptr, uint32_t len) {
	(void)len;
	value m = read(ptr), object = get(m, "object"), error = get(m, "error"), policy = get(get(object, "spec"), "policy");
	writer line = telling();
	static const char *const keys[] = {"id", "attempt", "first_failed_ms", "kind"};
	for (int i = 0; i < 4; i++) copy(&line, keys[i], m);
	key(&line, "key"), put_key(&line, get(m, "key"));
	static const char *const parts[] = {"class", "message", "reason", "after_ms"};
	for (int i = 0; i < 4; i++) copy(&line, parts[i], error);
	key(&line, "object"), put_bool(&line, object.type == MAP);
	report(&line, "error_policy", m, object, get(policy, "steps"));
	tell(&line);

	writer w = {0};
	begin(&w);
	copy(&w, "action", policy);
	copy(&w, "after_ms", policy);
	end(&w);
	return pack(&w);
}

// watched tells of an event, and returns what its newest object says of the
// entry.
static value watched(const char *entry, const uint8_t *ptr) {
	value m = read(ptr), before = get(m, "old"), after = get(m, "new");
	value object = after.type == MAP ? after : before, does = get(get(object, "spec"), entry);
	writer line = telling();
	copy(&line, "type", m);
	key(&line, "key"), put_key(&line, get(m, "key"));
	key(&line, "watch");
	begin(&line);
	copy(&line, "group", get(m, "watch"));
	copy(&line, "version", get(m, "watch"));
	copy(&line, "kind", get(m, "watch"));
	end(&line);
	key(&line, "old"), put_bool(&line, before.type == MAP);
	key(&line, "new"), put_bool(&line, after.type == MAP);
	report(&line, entry, m, object, get(does, "steps"));
	tell(&line);
	return does;
}

EXPORT(map) uint64_t map(const uint8_t *ptr, uint32_t len) {
	(void)len;
	value does = watched("map", ptr);
	writer w = {0};
	begin(&w);
	copy(&w, "keys", does);
	copy(&w, "error", does);
	end(&w);
	return pack(&w);
}

EXPORT(filter) int32_t filter(const uint8_t *ptr, uint32_t len) {
	(void)len;
	return true_of(get(watched("filter", ptr), "keep"));
}

// literal is a message written here.
static value literal(const char *name, const char *a, const char *b) {
	writer w = {0};
	begin(&w);
	key(&w, name), put_text(&w, a);
	if (b) {
		key(&w, "kind"), put_text(&w, b);
		key(&w, "namespace"), put_text(&w, "default");
		key(&w, "name"), put_text(&w, "a");
	}
	end(&w);
	return read(w.b);
}

static value word(const char *s) { return (value){.type = STRING, .in = (const uint8_t *)s, .len = strlen(s)}; }

EXPORT(configure) uint64_t configure(const uint8_t *ptr, uint32_t len) {
	(void)len;
	value m = read(ptr), config = get(m, "config"), refuse = get(config, "refuse");
	writer line = telling();
	key(&line, "entry"), put_text(&line, "configure");
	copy(&line, "config_gen", m);
	copy(&line, "config", m);
	if (is(get(config, "try"), "yes")) {
		key(&line, "steps"), put_array(&line, 2);
		operate(&line, word("config_get"), literal("key", "greeting", 0));
		operate(&line, word("api_get"), literal("apiVersion", "v1", "ConfigMap"));
	}
	tell(&line);
	if (refuse.type != STRING || refuse.len == 0) return 0;

	writer w = {0};
	begin(&w);
	key(&w, "error");
	begin(&w);
	key(&w, "message"), put_raw(&w, refuse);
	end(&w);
	end(&w);
	return pack(&w);
}

// judge is validate and default.
static uint64_t judge(const char *entry, const uint8_t *ptr) {
	value m = read(ptr), before = get(m, "old"), after = get(m, "object");
	value object = after.type == MAP ? after : before, does = get(get(object, "spec"), entry);
	writer line = telling();
	static const char *const keys[] = {"id", "controller", "webhook", "operation", "target", "requested", "options", "dry_run", "user"};
	for (int i = 0; i < 9; i++) copy(&line, keys[i], m);
	key(&line, "key"), put_key(&line, get(m, "key"));
	key(&line, "old"), put_bool(&line, before.type == MAP);
	key(&line, "new"), put_bool(&line, after.type == MAP);
	report(&line, entry, m, object, get(does, "steps"));
	tell(&line);

	writer w = {0};
	begin(&w);
	static const char *const parts[] = {"denied", "object", "base", "warnings", "audit", "error"};
	for (int i = 0; i < 6; i++) copy(&w, parts[i], does);
	end(&w);
	return pack(&w);
}

EXPORT(validate) uint64_t validate(const uint8_t *ptr, uint32_t len) {
	(void)len;
	return judge("validate", ptr);
}

EXPORT(default) uint64_t set_defaults(const uint8_t *ptr, uint32_t len) {
	(void)len;
	return judge("default", ptr);
}

// converted writes the object with another apiVersion.
static void converted(writer *w, value object, value to) {
	writer out = {0};
	begin(&out);
	const uint8_t *p = object.in;
	for (uint32_t i = 0; i < object.len; i++) {
		value name = read(p), v = read(next(p));
		p = next(next(p));
		out.open[0].keys++;
		put_raw(&out, name);
		put_raw(&out, is(name, "apiVersion") ? to : v);
	}
	end(&out);
	put_raw(w, read(out.b));
}

EXPORT(convert) uint64_t convert(const uint8_t *ptr, uint32_t len) {
	(void)len;
	value m = read(ptr), to = get(m, "to"), objects = get(m, "objects");
	writer w = {0};
	begin(&w);
	key(&w, "objects"), put_array(&w, objects.len);
	const uint8_t *p = objects.in;
	for (uint32_t i = 0; i < objects.len; i++, p = next(p)) {
		value object = read(p), does = get(get(object, "spec"), "convert"), error = get(does, "error");
		writer line = telling();
		copy(&line, "to", m);
		key(&line, "from"), put_raw(&line, get(object, "apiVersion"));
		key(&line, "key"), put_key(&line, get(object, "metadata"));
		report(&line, "convert", m, object, get(does, "steps"));
		tell(&line);
		if (error.type == MAP) {
			writer failed = {0};
			begin(&failed);
			key(&failed, "error"), put_raw(&failed, error);
			end(&failed);
			return pack(&failed);
		}
		converted(&w, object, to);
	}
	end(&w);
	return pack(&w);
}

EXPORT(describe) uint64_t describe(void) {
	arena_reset();
	writer w = {0};
	manifest(&w);
	return pack(&w);
}
