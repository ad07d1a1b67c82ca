// SPDX-License-Identifier: Apache-2.0

package client

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ApplyConfigurationFromUnstructured makes u usable for Writer.Apply.
func ApplyConfigurationFromUnstructured(u *unstructured.Unstructured) runtime.ApplyConfiguration {
	return &unstructuredApply{u}
}

type unstructuredApply struct {
	*unstructured.Unstructured
}

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (*unstructuredApply) IsApplyConfiguration() {}
