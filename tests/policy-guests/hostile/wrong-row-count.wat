;; Answers one row less than it was given.
(func $price (param i32 i32 i32 i32) (result i32)
  (i32.store offset=8 (local.get 2) (i32.sub (i32.load offset=8 (local.get 2)) (i32.const 1)))
  (i32.add (local.get 2) (i32.const 4)))
