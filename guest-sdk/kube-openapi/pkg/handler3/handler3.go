// SPDX-License-Identifier: Apache-2.0

// Package handler3 has the types of an API server's answers about its OpenAPI
// documents.
package handler3

// OpenAPIV3Discovery lists documents by their path.
type OpenAPIV3Discovery struct {
	Paths map[string]OpenAPIV3DiscoveryGroupVersion `json:"paths"`
}

// OpenAPIV3DiscoveryGroupVersion has the address of a document.
type OpenAPIV3DiscoveryGroupVersion struct {
	ServerRelativeURL string `json:"serverRelativeURL"`
}
