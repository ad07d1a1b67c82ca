// Package handler3 has what an API server says of its OpenAPI documents.
package handler3

// OpenAPIV3Discovery lists documents by their path.
type OpenAPIV3Discovery struct {
	Paths map[string]OpenAPIV3DiscoveryGroupVersion `json:"paths"`
}

// OpenAPIV3DiscoveryGroupVersion is where a document is.
type OpenAPIV3DiscoveryGroupVersion struct {
	ServerRelativeURL string `json:"serverRelativeURL"`
}
