//! Opening. What must not enter: later.
