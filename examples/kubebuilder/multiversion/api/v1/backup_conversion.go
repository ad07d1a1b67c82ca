// SPDX-License-Identifier: Apache-2.0

package v1

// Hub marks v1 as the version through which the others are converted.
func (*Backup) Hub() {}
