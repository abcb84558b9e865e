//! The zone `connector`.

fn main() {}
