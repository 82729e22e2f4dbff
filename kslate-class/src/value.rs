//! Equality of JSON values as jsonb has it, and the numbers jsonb can hold.

use serde_json::{Number, Value};

/// What PostgreSQL's numeric holds: digits before and after the decimal point.
const MAX_WHOLE_DIGITS: i64 = 131_072;
const MAX_FRACTION_DIGITS: i64 = 16_383;

/// True if jsonb would call the two equal: numbers by their exact value (`1`, `1.0` and `1e0` are one),
/// objects regardless of the order of their keys.
pub fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Decimal::of(a) == Decimal::of(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => left == right,
    }
}

/// The first thing in a value that jsonb cannot hold.
pub(crate) fn not_storable(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(text) if text.contains('\0') => {
            Some("has a NUL character (\\u0000), which jsonb cannot hold")
        }
        Value::Number(number) if !Decimal::of(number).fits_numeric() => {
            Some("has a number that is beyond what jsonb can hold")
        }
        Value::Array(items) => items.iter().find_map(not_storable),
        Value::Object(members) => members.iter().find_map(|(key, member)| {
            not_storable(member).or_else(|| not_storable(&Value::String(key.clone())))
        }),
        _ => None,
    }
}

/// A JSON number as `0.DIGITS * 10^point`, its digits without zeros at either end; zero has none.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    point: i64,
}

impl Decimal {
    fn of(number: &Number) -> Self {
        // Needs serde_json's arbitrary_precision: the text is what was written.
        let text = number.to_string();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa.to_owned(), exponent_of(exponent)),
            None => (text, 0),
        };
        let negative = mantissa.starts_with('-');
        let mantissa = mantissa.trim_start_matches('-');
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = format!("{whole}{fraction}");
        let significant = written.trim_start_matches('0');
        if significant.is_empty() {
            return Self {
                negative: false,
                digits: String::new(),
                point: 0,
            };
        }
        let leading_zeros = length(written.len()) - length(significant.len());
        Self {
            negative,
            point: exponent.saturating_add(length(whole.len()) - leading_zeros),
            digits: significant.trim_end_matches('0').to_owned(),
        }
    }

    fn fits_numeric(&self) -> bool {
        self.point <= MAX_WHOLE_DIGITS
            && length(self.digits.len()).saturating_sub(self.point) <= MAX_FRACTION_DIGITS
    }
}

/// An exponent; beyond 64 bits it is as good as infinite.
fn exponent_of(text: &str) -> i64 {
    let limit = if text.starts_with('-') {
        i64::MIN / 2
    } else {
        i64::MAX / 2
    };
    text.trim_start_matches('+')
        .parse::<i64>()
        .map_or(limit, |exponent| exponent.clamp(i64::MIN / 2, i64::MAX / 2))
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX / 4)
}
