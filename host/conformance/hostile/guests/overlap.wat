;; Asks with blocks that overlap, and with empty ones, at every edge of its
;; memory; traps where one is not answered.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_get" (func $api_get (type $op)))
  (import "reconciler_v1" "take" (func $take (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (import "reconciler_v1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (func $want (param $answer i64) (param $status i64) ;; traps where an operation has another status
    (if (i64.ne (i64.shr_s (local.get $answer) (i64.const 32)) (local.get $status)) (then (unreachable))))
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (call $want (call $api_get (i32.const 16) (i32.const 1) (i32.const 16) (i32.const 1000)) (i64.const 0)) ;; the answer over the request
    (call $want (call $api_get (i32.const 16) (i32.const 1) (i32.const 12) (i32.const 1000)) (i64.const 0))
    (call $want (call $api_get (i32.const 16) (i32.const 0) (i32.const 65536) (i32.const 0)) (i64.const 0)) ;; no room at the very end
    (if (i32.ne (call $take (i32.const 65536) (i32.const 0) (i32.const 0)) (i32.const 0)) (then (unreachable)))
    (if (i32.ne (call $take (i32.const 0) (i32.const -1) (i32.const 8)) (i32.const 0)) (then (unreachable))) ;; from behind the end
    (call $want (call $api_get (i32.const 65536) (i32.const 0) (i32.const 0) (i32.const 65536)) (i64.const 0)) ;; over the request itself
    (if (i32.ne (call $random_get (i32.const 65536) (i32.const 0)) (i32.const 0)) (then (unreachable)))
    (call $log (i32.const 0) (i32.const 65536) (i32.const 0))
    (i64.const 0)))
