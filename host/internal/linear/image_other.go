// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package linear

// imageSource is a copy where files without a name are not what they are on Linux.
type imageSource = copySource
