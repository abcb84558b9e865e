//! Exact numbers: a JSON number token is an integer of 64 bits, a double that prints as the same
//! decimal, or an error. Linear in the token's length, whatever its exponent.

use crate::error::ErrorCode;
use crate::value::Value;

/// Length of the longest number token at the start of `bytes` by RFC 8259's grammar.
pub(crate) fn token(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let at = |position: usize| bytes.get(position).copied();
    let start = usize::from(at(0) == Some(b'-'));
    let mut end = match at(start)? {
        b'0' => start + 1,
        b'1'..=b'9' => start + digits(start),
        _ => return None,
    };
    if at(end) == Some(b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(at(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(at(end + 1), Some(b'+' | b'-')));
        let power = digits(end + 1 + sign);
        if power > 0 {
            end += 1 + sign + power;
        }
    }
    Some(end)
}

/// The value of a token.
pub(crate) fn read(token: &str) -> Result<Value, ErrorCode> {
    let (negative, magnitude) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zero = whole.bytes().chain(fraction.bytes()).all(|b| b == b'0');
    if zero && negative {
        return Err(ErrorCode::NegativeZero);
    }
    if !magnitude.contains(['.', 'e', 'E']) {
        return integer(token);
    }
    if zero {
        return Ok(Value::Double(0.0));
    }
    double(negative, &Decimal::of(whole, fraction, exponent))
}

fn integer(token: &str) -> Result<Value, ErrorCode> {
    // Twenty digits and a sign are the most that fit.
    if token.len() > 21 {
        return Err(ErrorCode::NumberOutOfRange);
    }
    token
        .parse::<i64>()
        .map(Value::Int)
        .or_else(|_| token.parse::<u64>().map(Value::Uint))
        .map_err(|_| ErrorCode::NumberOutOfRange)
}

/// `0.DIGITS × 10^power`, digits without zeros at either end.
#[derive(PartialEq, Eq)]
struct Decimal {
    digits: String,
    power: i128,
}

impl Decimal {
    fn of(whole: &str, fraction: &str, exponent: &str) -> Self {
        let all = [whole, fraction].concat();
        let stripped = all.trim_start_matches('0');
        let leading = length(&all) - length(stripped);
        Self {
            digits: stripped.trim_end_matches('0').to_owned(),
            power: exponent_of(exponent) + length(whole) - leading,
        }
    }

    fn of_double(value: f64) -> Self {
        // LowerExp prints the shortest digits that read back as the same double.
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Self::of(whole, fraction, exponent)
    }
}

fn length(text: &str) -> i128 {
    i128::try_from(text.len()).unwrap_or(i128::MAX)
}

/// An exponent of any length; beyond any text's reach it only matters that it is far away.
fn exponent_of(text: &str) -> i128 {
    const FAR: i128 = 1 << 80;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    let size = if digits.len() > 24 {
        FAR
    } else {
        digits.bytes().fold(0, |sum, d| sum * 10 + i128::from(d - b'0'))
    };
    if negative { -size } else { size }
}

fn double(negative: bool, decimal: &Decimal) -> Result<Value, ErrorCode> {
    // The largest double is below 10^309, the smallest above 10^-324.
    if decimal.power > 400 {
        return Err(ErrorCode::NumberOutOfRange);
    }
    if decimal.power < -400 {
        return Err(ErrorCode::NumberNotExact);
    }
    let value: f64 = format!("0.{}e{}", decimal.digits, decimal.power).parse().unwrap_or(f64::INFINITY);
    if value.is_infinite() {
        return Err(ErrorCode::NumberOutOfRange);
    }
    if value == 0.0 || Decimal::of_double(value) != *decimal {
        return Err(ErrorCode::NumberNotExact);
    }
    Ok(Value::Double(if negative { -value } else { value }))
}
