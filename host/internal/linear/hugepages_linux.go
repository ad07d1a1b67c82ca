// SPDX-License-Identifier: Apache-2.0

package linear

import "golang.org/x/sys/unix"

// keepSmall keeps the system from using huge pages: with them a guest that has
// touched one byte could take 2 MiB. A kernel without them returns an error,
// which is ignored.
func keepSmall(space []byte) { _ = unix.Madvise(space, unix.MADV_NOHUGEPAGE) }
