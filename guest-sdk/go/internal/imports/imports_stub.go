// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1 && !tinygo.wasm

package imports

// Op is an operation. In native builds it has only a name.
type Op struct{ Name string }

// The operations of ABI v1.
var (
	APIGet      = Op{Name: "api_get"}
	APIList     = Op{Name: "api_list"}
	APICreate   = Op{Name: "api_create"}
	APIUpdate   = Op{Name: "api_update"}
	APIPatch    = Op{Name: "api_patch"}
	APIApply    = Op{Name: "api_apply"}
	APIDelete   = Op{Name: "api_delete"}
	CacheGet    = Op{Name: "cache_get"}
	CacheList   = Op{Name: "cache_list"}
	EventRecord = Op{Name: "event_record"}
	ConfigGet   = Op{Name: "config_get"}
)
