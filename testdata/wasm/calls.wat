;; Calls host functions by a program: the request ends with n records of five
;; i32 (function, four arguments) and then n. The results stand as i64 from
;; 512 on, one after the other. Requests arrive at 16384.
;;
;;   0 api_get       1 api_create  2 api_apply  3 cache_get  4 cache_list
;;   5 event_record  6 config_get  7 an operation of the future
;;   8 take  9 log  10 log_level  11 metric  12 cancelled  13 budget
;;  14 clock_time_get  15 random_get
;;
;; map and filter do the same, and return no keys, and 1.
(module
  (type $op (func (param i32 i32 i32 i32) (result i64)))
  (import "reconciler_v1" "api_get" (func $api_get (type $op)))
  (import "reconciler_v1" "api_create" (func $api_create (type $op)))
  (import "reconciler_v1" "api_apply" (func $api_apply (type $op)))
  (import "reconciler_v1" "cache_get" (func $cache_get (type $op)))
  (import "reconciler_v1" "cache_list" (func $cache_list (type $op)))
  (import "reconciler_v1" "event_record" (func $event_record (type $op)))
  (import "reconciler_v1" "config_get" (func $config_get (type $op)))
  (import "reconciler_v1" "teleport" (func $teleport (type $op)))
  (import "reconciler_v1" "take" (func $take (param i32 i32 i32) (result i32)))
  (import "reconciler_v1" "log" (func $log (param i32 i32 i32)))
  (import "reconciler_v1" "log_level" (func $log_level (result i32)))
  (import "reconciler_v1" "metric" (func $metric (param i32 i32 i32 f64) (result i32)))
  (import "reconciler_v1" "cancelled" (func $cancelled (result i32)))
  (import "reconciler_v1" "budget" (func $budget (param i32) (result i64)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (table funcref (elem $api_get $api_create $api_apply $cache_get $cache_list $event_record $config_get $teleport))
  (memory (export "memory") 4)
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param i32) (result i32) (i32.const 16384))

  (func $step (param $r i32) (result i64)
    (local $f i32) (local $a i32) (local $b i32) (local $c i32)
    (local.set $f (i32.load (local.get $r)))
    (local.set $a (i32.load offset=4 (local.get $r)))
    (local.set $b (i32.load offset=8 (local.get $r)))
    (local.set $c (i32.load offset=12 (local.get $r)))
    (if (i32.lt_u (local.get $f) (i32.const 8))
      (then (return (call_indirect (type $op) (local.get $a) (local.get $b) (local.get $c) (i32.load offset=16 (local.get $r)) (local.get $f)))))
    (if (i32.eq (local.get $f) (i32.const 8))
      (then (return (i64.extend_i32_s (call $take (local.get $a) (local.get $b) (local.get $c))))))
    (if (i32.eq (local.get $f) (i32.const 9))
      (then (call $log (local.get $a) (local.get $b) (local.get $c)) (return (i64.const 0))))
    (if (i32.eq (local.get $f) (i32.const 10))
      (then (return (i64.extend_i32_s (call $log_level)))))
    (if (i32.eq (local.get $f) (i32.const 11))
      (then (return (i64.extend_i32_s (call $metric (local.get $a) (local.get $b) (local.get $c) (f64.const 1))))))
    (if (i32.eq (local.get $f) (i32.const 12))
      (then (return (i64.extend_i32_s (call $cancelled)))))
    (if (i32.eq (local.get $f) (i32.const 13)) (then (return (call $budget (local.get $a)))))
    (if (i32.eq (local.get $f) (i32.const 14))
      (then (return (i64.extend_i32_s (call $clock_time_get (local.get $a) (i64.extend_i32_u (local.get $b)) (local.get $c))))))
    (i64.extend_i32_s (call $random_get (local.get $a) (local.get $b))))

  (func $run (param $ptr i32) (param $len i32) (result i64)
    (local $end i32) (local $record i32) (local $out i32)
    (local.set $end (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 4)))
    (local.set $record (i32.sub (local.get $end) (i32.mul (i32.load (local.get $end)) (i32.const 20))))
    (local.set $out (i32.const 512))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $record) (local.get $end)))
        (i64.store (local.get $out) (call $step (local.get $record)))
        (local.set $record (i32.add (local.get $record) (i32.const 20)))
        (local.set $out (i32.add (local.get $out) (i32.const 8)))
        (br $next)))
    (i64.const 0))

  (export "reconcile" (func $run))
  (export "map" (func $run))
  (func (export "filter") (param $ptr i32) (param $len i32) (result i32)
    (drop (call $run (local.get $ptr) (local.get $len)))
    (i32.const 1)))
