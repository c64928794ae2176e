;; Ranks the first row at a million dollars and a bit.
(func $price (param i32 i32 i32 i32) (result i32)
  (i64.store (i32.load offset=4 (local.get 2)) (i64.const 1000000000001))
  (i32.add (local.get 2) (i32.const 4)))
