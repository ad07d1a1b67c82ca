#include "host.h"
#include "steps.h"

#define ANSWER 8192

static const struct {
	const char *name;
	operation *run;
} operations[] = {
	{"api_get", api_get}, {"api_list", api_list}, {"api_create", api_create}, {"api_update", api_update},
	{"api_patch", api_patch}, {"api_apply", api_apply}, {"api_delete", api_delete}, {"cache_get", cache_get},
	{"cache_list", cache_list}, {"event_record", event_record}, {"config_get", config_get}, {"teleport", teleport},
};

// report writes what the answer of an operation says.
static void report(writer *w, int32_t status, value body, bool keep) {
	begin(w);
	key(w, "status");
	put_int(w, status);
	if (status == 0 && keep && body.type != ABSENT) {
		key(w, "body");
		put_plain(w, body);
	} else if (status != 0) {
		text_at(w, "reason", get(body, "reason"));
		text_at(w, "message", get(body, "message"));
		if (get(body, "rule").type == MAP) {
			key(w, "rule");
			put_plain(w, get(body, "rule"));
		}
	}
	end(w);
}

// perform carries out an operation. An answer that does not fit is taken, and the
// operation is not run again.
static void perform(writer *w, operation *op, value req, bool keep) {
	uint8_t *dst = alloc(ANSWER);
	uint32_t n = next(req.raw) - req.raw;
	uint64_t res = op(req.raw, n, dst, ANSWER);
	int32_t status = res >> 32;
	uint32_t len = res;
	if (len > ANSWER) {
		dst = alloc(len);
		if (take(dst, 0, len) != (int32_t)len) __builtin_trap();
	}
	report(w, status, len ? read(dst) : (value){.type = ABSENT}, keep);
}

void operate(writer *w, value name, value req) {
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
		if (!is(name, operations[i].name)) continue;
		perform(w, operations[i].run, req, !is(name, "api_delete") && !is(name, "event_record"));
		return;
	}
	begin(w);
	key(w, "lacks");
	put_plain(w, name);
	end(w);
}
