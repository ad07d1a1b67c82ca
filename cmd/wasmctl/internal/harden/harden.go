// SPDX-License-Identifier: Apache-2.0

// Package harden removes from a process the rights that it does not need, so that code that escapes
// the sandbox of a module finds little: files (Landlock), system calls (seccomp), privileges of
// other programs (no_new_privs), and the view of its memory for other processes of the user
// (dumpable). It needs Linux. On other systems, nothing is in force.
package harden

import (
	"cmp"
	"fmt"
	"strings"
)

// Mode is the value of --harden.
type Mode string

// Modes.
const (
	Auto     Mode = "auto" // everything that the system supports
	Off      Mode = "off"
	Required Mode = "required" // an error if something is missing
)

// Modes are all modes.
var Modes = []Mode{Auto, Off, Required}

// Policy describes the needs of a process.
type Policy struct {
	// Read are files and folders to read, Write are folders to read and write, and Execute are
	// programs. Missing ones are ignored.
	Read, Write, Execute []string
	// Self lets the process start its own program again.
	Self bool
	// AnyFile permits the process, and the processes that it starts, to use all files.
	AnyFile bool
	// Alone means that the process needs no network and starts no program.
	Alone bool
}

// State describes the hardening that is in force.
type State struct {
	InForce []string // for example "landlock v6"
	Missing []string // with the reason
}

// String returns the state as text for people.
func (s *State) String() string {
	text := cmp.Or(strings.Join(s.InForce, ", "), "none")
	if len(s.Missing) > 0 {
		text += "; without " + strings.Join(s.Missing, ", ")
	}
	return text
}

// Apply hardens this process and its children for the rest of their lives. It returns the hardening
// that is in force. In mode Required, it returns an error if something is missing.
func Apply(mode Mode, p *Policy) (*State, error) {
	s := &State{}
	if mode == Off {
		return s, nil
	}
	apply(p, s)
	if p.AnyFile && mode == Required {
		if err := filesError(); err != nil { // for processes that this one starts
			s.add("landlock", err)
		}
	}
	if mode == Required && len(s.Missing) > 0 {
		return s, fmt.Errorf("--harden required: missing: %s; use --harden auto to run without", strings.Join(s.Missing, "; "))
	}
	return s, nil
}

// add records the result of a part.
func (s *State) add(part string, err error) {
	if err != nil {
		s.Missing = append(s.Missing, part+": "+err.Error())
		return
	}
	s.InForce = append(s.InForce, part)
}
