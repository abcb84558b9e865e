//! Numbers by value, exactly: `1` and `1.0` are equal, no whole number is rounded.

use std::cmp::Ordering;

use exequatur_canonical::Value;

/// A JSON number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i128),
    /// Finite.
    Double(f64),
}

impl Number {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(n) => Some(Self::Whole(i128::from(*n))),
            Value::Uint(n) => Some(Self::Whole(i128::from(*n))),
            Value::Double(n) => Some(Self::Double(*n)),
            _ => None,
        }
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => a.total_cmp(&b),
            (Self::Whole(a), Self::Double(b)) => whole_and_double(a, b),
            (Self::Double(a), Self::Whole(b)) => whole_and_double(b, a).reverse(),
        }
    }
}

/// A JSON whole number is within 2^64, so beyond 2^65 the double's sign decides; below, its floor is
/// exact.
fn whole_and_double(whole: i128, double: f64) -> Ordering {
    const LIMIT: f64 = 36_893_488_147_419_103_232.0;
    if double >= LIMIT {
        return Ordering::Less;
    }
    if double <= -LIMIT {
        return Ordering::Greater;
    }
    #[allow(clippy::cast_possible_truncation, reason = "the floor is within ±2^65")]
    let floor = double.floor() as i128;
    whole.cmp(&floor).then(if double > double.floor() { Ordering::Less } else { Ordering::Equal })
}
