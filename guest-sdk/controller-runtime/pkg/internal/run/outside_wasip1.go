// SPDX-License-Identifier: Apache-2.0

package run

import (
	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/hostlog"
)

func init() { hostlog.Outside = lines{wasmctl.ModuleLog()} }
