//! A service's one clock, with high-water mark and trust. Knows no store: the mark is kept through a trait.
