// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// goError is the error of a go command, with the end of its output. shown means that the user has seen that.
type goError struct {
	err   error
	said  string
	shown bool
}

// Error implements error.
func (e *goError) Error() string {
	if e.shown || e.said == "" {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.said
}

// Unwrap returns the error without the output.
func (e *goError) Unwrap() error { return e.err }

// absent matches the text of the go command about a module that it could not get, as opposed to one that lacks a
// package or does not compile. The first group is the module.
var absent = regexp.MustCompile(`(?m)^(?:.*?: )??(?:(\S+)@v[^\s/]+: |verifying (\S+)@|module lookup disabled by ).*`)

// absence returns the error for a module that could not be downloaded, if the error of listing packages or one of
// the packages has this cause.
func (s *Stage) absence(packages []pkg, err error) error {
	if failed, ok := errors.AsType[*goError](err); ok && absent.MatchString(failed.said) {
		return s.absentModule("", failed.said)
	}
	for i := range packages {
		if p := &packages[i]; p.Dir == "" && p.Error != nil && absent.MatchString(p.Error.Err) {
			return s.absentModule(p.ImportPath, p.Error.Err)
		}
	}
	return err
}

// absentModule returns the error for a module that could not be downloaded. importPath is the package in it that
// the program needs, if known.
func (s *Stage) absentModule(importPath, said string) error {
	m := absent.FindStringSubmatch(said)
	cause, module := strings.TrimPrefix(m[0], "go: "), m[1]+m[2]
	for at := importPath; module == "" && at != "." && at != ""; at = path.Dir(at) {
		if s.required[at] != "" {
			module = at
		}
	}
	if module == "" {
		module = importPath
	}
	do := "let the go command reach it (GOPROXY, GOPRIVATE), or download it before: go mod download"
	if v := s.pinned[module]; v != "" && s.vendored != nil {
		do = "the vendor folder has " + v + ", without a package or a version that modules need; update the requirement in go.mod and run go mod vendor, or " + do
	}
	return fmt.Errorf("module[%s]: could not be downloaded: %s; %s", module, cause, do)
}
