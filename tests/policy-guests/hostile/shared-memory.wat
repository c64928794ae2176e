;; Shares memory between threads, which policies may not.
(component (core module (memory 1 1 shared)))
