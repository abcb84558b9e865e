//! The zone `approval`.

fn main() {}
