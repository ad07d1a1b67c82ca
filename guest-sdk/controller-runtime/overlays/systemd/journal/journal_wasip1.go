// SPDX-License-Identifier: Apache-2.0

package journal

import "errors"

// Enabled returns false: a module has no journal.
func Enabled() bool { return false }

// Send returns an error: there is no journal.
func Send(string, Priority, map[string]string) error { return errors.ErrUnsupported }

// StderrIsJournalStream returns false: there is no journal.
func StderrIsJournalStream() (bool, error) { return false, nil }

// StdoutIsJournalStream returns false: there is no journal.
func StdoutIsJournalStream() (bool, error) { return false, nil }
