;; Has a name of no letters.
(data (i32.const 16) "\00\04\00\00\00\00\00\00\07\04\00\00\05\00\00\00\0c\04\00\00\0b\00\00\00\17\04\00\00\02\00\00\00")
;; $about is defined above
