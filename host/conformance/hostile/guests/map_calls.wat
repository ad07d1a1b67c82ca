;; Asks in map for what only a run may do; traps where that is not UNAVAILABLE.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_create" (func $api_create (type $op)))
  (import "reconciler_v1" "config_get" (func $config_get (type $op)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func $want (param $answer i64) (param $status i64) ;; traps where an operation has another status
    (if (i64.ne (i64.shr_s (local.get $answer) (i64.const 32)) (local.get $status)) (then (unreachable))))
  (data (i32.const 512) "\80")
  (func (export "map") (param i32 i32) (result i64)
    (call $want (call $api_create (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 16)) (i64.const -7))
    (call $want (call $config_get (i32.const 512) (i32.const 1) (i32.const 0) (i32.const 16)) (i64.const 0))
    (i64.const 0))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (i64.const 0)))
