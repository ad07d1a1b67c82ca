// SPDX-License-Identifier: Apache-2.0

// Package client reads and writes objects of the Kubernetes API. Its API is
// that of controller-runtime. The client of a manager calls the host of the
// module: it reads kinds that the controller watches from the host's cache, and
// all other kinds from the API server.
package client
