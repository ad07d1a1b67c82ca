// SPDX-License-Identifier: Apache-2.0

package pq

import "errors"

// userCurrent returns an error: a module has no user.
func userCurrent() (string, error) { //nolint:unused // the library calls it
	return "", errors.New("pq: a module has no user: name one in the address of the database")
}
