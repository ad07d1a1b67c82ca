// SPDX-License-Identifier: Apache-2.0

// Package direct refuses CBOR.
package direct

import "errors"

var errNoCBOR = errors.New("cbor: not available in a module: use JSON")

// Marshal returns an error.
func Marshal(any) ([]byte, error) { return nil, errNoCBOR }

// Unmarshal returns an error.
func Unmarshal([]byte, any) error { return errNoCBOR }

// Diagnose returns an error.
func Diagnose([]byte) (string, error) { return "", errNoCBOR }
