//! The zone `credential-vault`.

fn main() {}
