// SPDX-License-Identifier: Apache-2.0

package predicate

import "time"

// TTL returns the longest time for which changes of an object are hidden; 0 means forever.
func (f *Filter) TTL() time.Duration {
	if f == nil {
		return 0
	}
	return f.ttl
}

// String returns the predicates in their syntax, such as "any(generation, labels)".
func (f *Filter) String() string {
	if f == nil {
		return "none"
	}
	return f.term.String()
}

func (v Verdict) String() string { return [...]string{"pass", "hide", "ask"}[v] }
