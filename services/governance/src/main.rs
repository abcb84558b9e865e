//! The zone `governance`.

fn main() {}
