// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// wasmFrame is a line of wazero's stack trace: the names of module and function
// with a dot between them, and the type.
var wasmFrame = regexp.MustCompile(`^\t(.*)\([a-z0-9,]*\)(?: [a-z0-9,()]+)?$`)

// readTrace returns the functions of wazero's stack trace that have names, the
// innermost first, without those of the runtime and the SDK around the user's.
func readTrace(trace string) []string {
	var stack []string
	for line := range strings.Lines(trace) {
		m := wasmFrame.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		name := functionOf(m[1])
		if name == "" || len(stack) == 0 && inRuntime(name) {
			continue
		}
		stack = append(stack, name)
	}
	return folded(withoutSDK(stack))
}

// functionOf returns the function of a frame, without the module. It is empty if the
// function has no name.
func functionOf(frame string) string {
	_, name, ok := strings.Cut(frame, ".wasm.") // linkers name modules like their files
	if !ok {
		_, name, _ = strings.Cut(frame, ".")
	}
	if strings.HasPrefix(name, "$") {
		return ""
	}
	return demangle(name)
}

// folded writes a function that is repeated once, with the number of times.
func folded(stack []string) []string {
	var out []string
	for i := 0; i < len(stack); {
		n := 1
		for i+n < len(stack) && stack[i+n] == stack[i] {
			n++
		}
		if n > 1 {
			out = append(out, fmt.Sprintf("%s (%d times)", stack[i], n))
		} else {
			out = append(out, stack[i])
		}
		i += n
	}
	return out
}

// Prefixes of functions in which a mistake is never made.
var (
	runtimePrefixes = []string{"runtime.", "panic(", "std::", "core::", "alloc::", "__rustc", "rust_", "__rust_", "abort"}
	sdkPrefixes     = []string{"wasmctl::", "github.com/wasmctl/wasmctl/guest-sdk/go."}
)

func inRuntime(name string) bool {
	return name == "panic" || hasPrefix(strings.TrimLeft(name, "<"), runtimePrefixes)
}

// withoutSDK cuts a stack off at the frame in which the SDK calls the user's function.
func withoutSDK(stack []string) []string {
	for i, frame := range stack {
		if i > 0 && hasPrefix(frame, sdkPrefixes) {
			return stack[:i]
		}
	}
	return stack
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// demangle returns the name of a function as in its source. It reads symbols of Rust, in the
// old and the new form, and Go's paths of packages.
func demangle(symbol string) string {
	switch {
	case strings.HasPrefix(symbol, "_ZN"):
		return demangleLegacy(symbol)
	case strings.HasPrefix(symbol, "_R"):
		return demangleV0(symbol)
	case strings.Contains(symbol, "%"):
		if plain, err := url.PathUnescape(symbol); err == nil {
			return plain
		}
	}
	return symbol
}

// legacyEscapes are the characters that a symbol of the old form cannot have.
var legacyEscapes = strings.NewReplacer(
	"..", "::", "$LT$", "<", "$GT$", ">", "$LP$", "(", "$RP$", ")", "$C$", ",", "$RF$", "&", "$BP$", "*", "$SP$", "@",
	"$u20$", " ", "$u27$", "'", "$u5b$", "[", "$u5d$", "]", "$u7b$", "{", "$u7d$", "}", "$u7e$", "~", "$u3b$", ";", "$u2b$", "+", "$u22$", `"`,
)

// legacyHash is the last part of a symbol of the old form.
var legacyHash = regexp.MustCompile(`^h[0-9a-f]{16}$`)

// demangleLegacy reads "_ZN", parts with their lengths, and "E".
func demangleLegacy(symbol string) string {
	var parts []string
	rest := strings.TrimPrefix(symbol, "_ZN")
	for rest != "" && rest[0] != 'E' {
		part, after, ok := sized(rest, false)
		if !ok {
			return symbol
		}
		parts, rest = append(parts, part), after
	}
	if len(parts) == 0 {
		return symbol
	}
	if n := len(parts); n > 1 && legacyHash.MatchString(parts[n-1]) {
		parts = parts[:n-1]
	}
	for i, p := range parts {
		if strings.HasPrefix(p, "_$") {
			p = p[1:]
		}
		parts[i] = legacyEscapes.Replace(p)
	}
	return strings.Join(parts, "::")
}

// demangleV0 returns the identifiers of a symbol of the new form. It ignores the types in it:
// a stack for people needs the path.
func demangleV0(symbol string) string {
	var parts []string
	for rest := strings.TrimPrefix(symbol, "_R"); rest != ""; {
		switch c := rest[0]; {
		case c == 's' || c == 'B': // a disambiguator, or a reference to an earlier part
			_, after, ok := strings.Cut(rest, "_")
			if !ok {
				return symbol
			}
			rest = after
		case c >= '1' && c <= '9':
			part, after, ok := sized(rest, true)
			if !ok {
				return symbol
			}
			parts, rest = append(parts, part), after
		default:
			rest = rest[1:]
		}
	}
	if len(parts) == 0 {
		return symbol
	}
	return strings.Join(parts, "::")
}

// sized reads a length and that many bytes. The new form has a _ between them if the bytes
// start with a digit or a _.
func sized(s string, v0 bool) (part, rest string, ok bool) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.Atoi(s[:digits])
	if err != nil || n <= 0 {
		return "", "", false
	}
	s = s[digits:]
	if v0 {
		s = strings.TrimPrefix(s, "_")
	}
	if n > len(s) {
		return "", "", false
	}
	return s[:n], s[n:], true
}
