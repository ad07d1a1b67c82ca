// A replacement must have the module line of the original.
module k8s.io/kube-openapi

go 1.24.0

require sigs.k8s.io/structured-merge-diff/v6 v6.3.0

require sigs.k8s.io/randfill v1.0.0 // indirect
