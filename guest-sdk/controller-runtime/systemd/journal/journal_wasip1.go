package journal

import "errors"

// Enabled reports whether there is a journal: a module has none.
func Enabled() bool { return false }

// Send returns an error: there is no journal.
func Send(string, Priority, map[string]string) error { return errors.ErrUnsupported }

// StderrIsJournalStream reports whether a message would get into the journal: never.
func StderrIsJournalStream() (bool, error) { return false, nil }

// StdoutIsJournalStream reports whether a message would get into the journal: never.
func StdoutIsJournalStream() (bool, error) { return false, nil }
