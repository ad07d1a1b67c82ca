;; Forwards the whole request, as it arrived, to api_get, so that a test sees
;; what a guest sees. error_policy does the same with api_list.
(module
  (import "reconciler_v1" "api_get" (func $get (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_list" (func $list (param i32 i32 i32 i32) (result i64)))
  (memory (export "memory") 2)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $get (local.get $ptr) (local.get $len) (i32.const 0) (i32.const 0)))
    (i64.const 0))
  (func (export "error_policy") (param $ptr i32) (param $len i32) (result i64)
    (drop (call $list (local.get $ptr) (local.get $len) (i32.const 0) (i32.const 0)))
    (i64.const 0)))
