// Package harden takes from a process what it does not need, so that code which
// escapes the sandbox of a module finds little: files (Landlock), system calls
// (seccomp), privileges of other programs (no_new_privs) and a view of its memory for
// others of the same user (dumpable). It needs Linux; elsewhere nothing is in force.
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
	Auto     Mode = "auto" // what the system has
	Off      Mode = "off"
	Required Mode = "required" // an error where something is missing
)

// Modes are all of them.
var Modes = []Mode{Auto, Off, Required}

// Policy is what a process needs.
type Policy struct {
	// Read are files and folders to read, Write folders to read and write, Execute
	// programs. Those that are not there are left out.
	Read, Write, Execute []string
	// Self lets the process start its own program again.
	Self bool
	// AnyFile leaves the process all files, and what it starts.
	AnyFile bool
	// Alone says that the process needs no network and starts no program.
	Alone bool
}

// State is what is in force.
type State struct {
	InForce []string // such as "landlock v6"
	Missing []string // with the reason
}

// String is the state for people.
func (s *State) String() string {
	text := cmp.Or(strings.Join(s.InForce, ", "), "none")
	if len(s.Missing) > 0 {
		text += "; without " + strings.Join(s.Missing, ", ")
	}
	return text
}

// Apply hardens this process for the rest of its life, and what it starts. Without
// an error it says what is in force; in mode Required an error says what is missing.
func Apply(mode Mode, p *Policy) (*State, error) {
	s := &State{}
	if mode == Off {
		return s, nil
	}
	apply(p, s)
	if p.AnyFile && mode == Required {
		if err := filesError(); err != nil { // of processes that this one starts
			s.add("landlock", err)
		}
	}
	if mode == Required && len(s.Missing) > 0 {
		return s, fmt.Errorf("--harden required: missing: %s; use --harden auto to run without", strings.Join(s.Missing, "; "))
	}
	return s, nil
}

// add notes what became of a part.
func (s *State) add(part string, err error) {
	if err != nil {
		s.Missing = append(s.Missing, part+": "+err.Error())
		return
	}
	s.InForce = append(s.InForce, part)
}
