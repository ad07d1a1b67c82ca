;; Hands every operation bytes that are no request; traps where one is carried
;; out.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_get" (func $api_get (type $op)))
  (import "reconciler_v1" "api_list" (func $api_list (type $op)))
  (import "reconciler_v1" "api_create" (func $api_create (type $op)))
  (import "reconciler_v1" "api_update" (func $api_update (type $op)))
  (import "reconciler_v1" "api_patch" (func $api_patch (type $op)))
  (import "reconciler_v1" "api_apply" (func $api_apply (type $op)))
  (import "reconciler_v1" "api_delete" (func $api_delete (type $op)))
  (import "reconciler_v1" "cache_get" (func $cache_get (type $op)))
  (import "reconciler_v1" "cache_list" (func $cache_list (type $op)))
  (import "reconciler_v1" "event_record" (func $event_record (type $op)))
  (table funcref (elem $api_get $api_list $api_create $api_update $api_patch $api_apply $api_delete
    $cache_get $cache_list $event_record))
  (memory (export "memory") 1)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\81\aaapiVersion\df\ff\ff\ff\ff\81\c1\c7\ff\d9\91\91\91\91")
  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $op i32) (local $n i32)
    (loop $ops
      (local.set $n (i32.const 0))
      (loop $bytes ;; more and more bytes of what is no msgpack
        (if (i64.ge_s (i64.shr_s (call_indirect (type $op) (i32.const 16) (local.get $n) (i32.const 4096) (i32.const 4096) (local.get $op)) (i64.const 32)) (i64.const 0))
          (then (unreachable)))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $bytes (i32.lt_u (local.get $n) (i32.const 30))))
      (local.set $op (i32.add (local.get $op) (i32.const 1)))
      (br_if $ops (i32.lt_s (local.get $op) (i32.const 10))))
    (i64.const 0)))
