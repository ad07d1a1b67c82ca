;; Is as good or as bad as the byte after the word "mode:" in its data says; a
;; test writes that into the binary, and so gets modules of different digests. map
;; names the object o0, always.
;;
;;   0 awaits a change          1 traps at once
;;   2 traps where the object ends with "0"
;;   3 spins forever            4 leaks a page each run until it is refused, then traps
;;   5 a conflict each time     6 requeues at once, for ever
;;   7 declares a ConfigMap "made" with data.color "blue", which a test changes
;;   8 asks for the operations of its script, which a test writes after the word
;;     "script:" (i32 op, i32 length, the request; op 0 ends it; the others stand
;;     in the order of ABI.md); if one is not answered with 0, it is a conflict
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
  (import "reconciler_v1" "config_get" (func $config_get (type $op)))
  (table 12 funcref)
  (elem (i32.const 1) $api_get $api_list $api_create $api_update $api_patch $api_apply $api_delete
    $cache_get $cache_list $event_record $config_get)
  (memory (export "memory") 2)
  (data (i32.const 16) "\81\a5error\82\a5class\a8conflict\a7message\a5again")
  (data (i32.const 128) "\82\a6action\a7requeue\a8after_ms\00")
  (data (i32.const 192) "\81\a4keys\91\81\a4name\a2o0")
  (data (i32.const 256) "mode:\00")
  (data (i32.const 512) "\81\a5apply\91\84\aaapiVersion\a2v1\a4kind\a9ConfigMap\a8metadata\81\a4name\a4made\a4data\81\a5color\a4blue")
  (data (i32.const 69632) "script:"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00")
  (func (export "reconciler_abi_1"))
  (func (export "buffer") (param $size i32) (result i32)
    (select (i32.const 1024) (i32.const 0) (i32.lt_u (local.get $size) (i32.const 60000))))

  (func $result (param $ptr i32) (param $len i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32))
            (i64.extend_i32_u (local.get $len))))

  (func (export "reconcile") (param $ptr i32) (param $len i32) (result i64)
    (local $mode i32)
    (local.set $mode (i32.load8_u (i32.const 261)))
    (if (i32.eq (local.get $mode) (i32.const 1)) (then (unreachable)))
    (if (i32.and
          (i32.eq (local.get $mode) (i32.const 2))
          (i32.eq (i32.const 0x30) (i32.load8_u (i32.sub (i32.add (local.get $ptr) (local.get $len)) (i32.const 1)))))
      (then (unreachable)))
    (if (i32.eq (local.get $mode) (i32.const 3)) (then (loop $forever (br $forever))))
    (if (i32.eq (local.get $mode) (i32.const 4)) (then
      (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then (unreachable)))))
    (if (i32.eq (local.get $mode) (i32.const 5)) (then (return (call $result (i32.const 16) (i32.const 37)))))
    (if (i32.eq (local.get $mode) (i32.const 6)) (then (return (call $result (i32.const 128) (i32.const 26)))))
    (if (i32.eq (local.get $mode) (i32.const 7)) (then (return (call $result (i32.const 512) (i32.const 75)))))
    (if (i32.eq (local.get $mode) (i32.const 8)) (then (return (call $script))))
    (i64.const 0))

  (func $script (result i64)
    (local $at i32) (local $len i32)
    (local.set $at (i32.const 69639))
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load (local.get $at))))
        (local.set $len (i32.load offset=4 (local.get $at)))
        (if (i64.ne (i64.const 0) (i64.shr_u
              (call_indirect (type $op) (i32.add (local.get $at) (i32.const 8)) (local.get $len) (i32.const 81920) (i32.const 49152)
                (i32.load (local.get $at)))
              (i64.const 32)))
          (then (return (call $result (i32.const 16) (i32.const 37)))))
        (local.set $at (i32.add (local.get $at) (i32.add (local.get $len) (i32.const 8))))
        (br $next)))
    (i64.const 0))
  (func (export "map") (param i32 i32) (result i64) (call $result (i32.const 192) (i32.const 16))))
