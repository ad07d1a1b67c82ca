package v1alpha1

import _ "embed"

// CRDs are the CustomResourceDefinitions of the kinds, as YAML documents.
//
//go:embed crds.yaml
var CRDs string
