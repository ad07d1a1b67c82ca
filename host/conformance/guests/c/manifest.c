#include "steps.h"

static void field(writer *w, const char *name, const char *text) {
	key(w, name);
	put_text(w, text);
}

static void number(writer *w, const char *name, int64_t n) {
	key(w, name);
	put_int(w, n);
}

static void yes(writer *w, const char *name) {
	key(w, name);
	put_bool(w, true);
}

// words writes an array of words, which a space separates.
static void words(writer *w, const char *name, const char *text) {
	uint32_t n = 1;
	for (const char *p = text; *p; p++) n += *p == ' ';
	key(w, name);
	put_array(w, n);
	for (const char *start = text;; text++) {
		if (*text && *text != ' ') continue;
		put_string(w, start, text - start);
		if (!*text) return;
		start = text + 1;
	}
}

static void kind(writer *w, const char *group, const char *version, const char *name) {
	field(w, "group", group);
	field(w, "version", version);
	field(w, "kind", name);
}

static void watches(writer *w) {
	key(w, "for");
	begin(w);
	kind(w, "conformance.wasmctl.dev", "v1", "Case");
	field(w, "labelSelector", "conformance.wasmctl.dev/run=yes");
	words(w, "predicates", "generation");
	end(w);

	key(w, "owns");
	put_array(w, 1);
	begin(w);
	kind(w, "", "v1", "ConfigMap");
	yes(w, "controllerOnly");
	end(w);

	key(w, "watches");
	put_array(w, 2);
	begin(w);
	kind(w, "", "v1", "Secret");
	words(w, "predicates", "func");
	field(w, "map", "func");
	end(w);
	begin(w);
	kind(w, "apps", "v1", "Deployment");
	words(w, "namespaces", "default größe");
	field(w, "map", "label:conformance.wasmctl.dev/case");
	yes(w, "metadataOnly");
	yes(w, "optional");
	end(w);
}

static void capability(writer *w, const char *group, const char *resource, const char *verbs) {
	field(w, "group", group);
	field(w, "resource", resource);
	words(w, "verbs", verbs);
}

static void capabilities(writer *w) {
	key(w, "capabilities");
	put_array(w, 3);
	begin(w);
	capability(w, "", "configmaps", "get list create update patch delete");
	words(w, "fields", "data metadata.labels[größe]");
	end(w);
	begin(w);
	capability(w, "apps", "deployments", "get update");
	words(w, "subresources", "scale");
	words(w, "namespaces", "default");
	words(w, "names", "web");
	end(w);
	begin(w);
	capability(w, "events.k8s.io", "events", "create patch");
	end(w);
}

static void rule(writer *w, const char *groups, const char *versions, const char *resources, const char *operations) {
	words(w, "apiGroups", groups);
	words(w, "apiVersions", versions);
	words(w, "resources", resources);
	words(w, "operations", operations);
}

static void webhooks(writer *w) {
	key(w, "webhooks");
	put_array(w, 2);
	begin(w);
	field(w, "type", "validate");
	field(w, "path", "/validate");
	field(w, "name", "validate.conformance.wasmctl.dev");
	key(w, "rules");
	put_array(w, 1);
	begin(w);
	rule(w, "conformance.wasmctl.dev", "v1 v2", "cases cases/status", "CREATE UPDATE DELETE");
	field(w, "scope", "Namespaced");
	end(w);
	field(w, "failurePolicy", "Ignore");
	field(w, "matchPolicy", "Exact");
	number(w, "timeoutSeconds", 5);
	field(w, "namespaceSelector", "team in (a, b)");
	field(w, "objectSelector", "!legacy");
	key(w, "matchConditions");
	put_array(w, 1);
	begin(w);
	field(w, "name", "named");
	field(w, "expression", "object.metadata.name != ''");
	end(w);
	end(w);
	begin(w);
	field(w, "type", "default");
	field(w, "path", "/mutate");
	key(w, "rules");
	put_array(w, 1);
	begin(w);
	rule(w, "*", "*", "cases", "*");
	end(w);
	field(w, "reinvocationPolicy", "IfNeeded");
	end(w);

	key(w, "conversions");
	put_array(w, 1);
	begin(w);
	field(w, "group", "conformance.wasmctl.dev");
	field(w, "kind", "Case");
	words(w, "versions", "v1 v2");
	end(w);
}

void manifest(writer *w) {
	begin(w);
	field(w, "name", "conformance");
	field(w, "version", "1.0.0");
	number(w, "abi", 1);
	field(w, "sdk", "none");
	watches(w);
	capabilities(w);
	key(w, "limits");
	begin(w);
	number(w, "memory", 256 << 20);
	number(w, "timeout", 30000);
	number(w, "host_calls", 1000);
	number(w, "log_lines", 1000000);
	number(w, "event_rate", 100000);
	number(w, "api_rate", 50);
	number(w, "metric_series", 50);
	end(w);
	webhooks(w);
	field(w, "finalizer", "conformance.wasmctl.dev/case");
	number(w, "concurrency", 2);
	key(w, "config");
	begin(w);
	field(w, "greeting", "hello");
	field(w, "größe", "klein");
	end(w);
	words(w, "requires", "config_get");
	words(w, "wants", "teleport");
	end(w);
}
