package pq

import "errors"

// userCurrent returns an error: a module runs as nobody.
func userCurrent() (string, error) { //nolint:unused // by the library
	return "", errors.New("pq: a module has no user: name one in the address of the database")
}
