// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var reference = regexp.MustCompile(`\$(?:\$|\{([^}]*)\}?)?`)

var variable = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)

// expand replaces ${NAME} and ${NAME:-default} in a value by environment variables, and $$ by a dollar
// sign. Other dollar signs stay. A variable that is not set and has no default is an error.
func expand(text string, env Env) (string, error) {
	var errs []error
	out := reference.ReplaceAllStringFunc(text, func(ref string) string {
		switch {
		case ref == "$":
			return ref
		case ref == "$$":
			return "$"
		case !strings.HasSuffix(ref, "}"):
			errs = append(errs, fmt.Errorf("%q: the closing brace is missing; write $$ for a dollar sign", ref))
			return ""
		}
		m := variable.FindStringSubmatch(ref[2 : len(ref)-1])
		if m == nil {
			errs = append(errs, fmt.Errorf("%q: want ${NAME} or ${NAME:-default}; write $$ for a dollar sign", ref))
			return ""
		}
		value, ok := env(m[1])
		switch {
		case ok && (value != "" || m[2] == ""):
			return value
		case m[2] != "":
			return m[3]
		}
		errs = append(errs, fmt.Errorf("environment variable %s is not set; write ${%s:-default} for a default", m[1], m[1]))
		return ""
	})
	return out, errors.Join(errs...)
}
