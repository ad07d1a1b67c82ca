// Package direct refuses CBOR.
package direct

import "errors"

var errNoCBOR = errors.New("cbor: a module does not have it: use JSON")

// Marshal is always an error.
func Marshal(any) ([]byte, error) { return nil, errNoCBOR }

// Unmarshal is always an error.
func Unmarshal([]byte, any) error { return errNoCBOR }

// Diagnose is always an error.
func Diagnose([]byte) (string, error) { return "", errNoCBOR }
