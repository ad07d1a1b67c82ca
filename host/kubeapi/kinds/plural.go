// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"strings"

	"github.com/gobuffalo/flect"
)

// Plural returns the resource of a kind that no API server can be asked about. It is the plural
// that kubebuilder writes into CustomResourceDefinitions: "Gateway" becomes "gateways".
func Plural(kind string) string { return flect.Pluralize(strings.ToLower(kind)) }
