package predicate

import "time"

// TTL returns how long changes of an object are hidden at most; 0 is forever.
func (f *Filter) TTL() time.Duration {
	if f == nil {
		return 0
	}
	return f.ttl
}

// String returns the predicates as they are written, "any(generation, labels)".
func (f *Filter) String() string {
	if f == nil {
		return "none"
	}
	return f.term.String()
}

func (v Verdict) String() string { return [...]string{"pass", "hide", "ask"}[v] }
