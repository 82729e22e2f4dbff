//! What an unquoted scalar means. YAML 1.2's core schema decides; what YAML 1.1 parsers read otherwise is refused,
//! so that nobody's definition means something else than it seems to.

use super::tree::Kind;
use crate::fault::quoted;
use serde_json::Number;

/// Resolves an unquoted scalar; the error says how to write it instead.
pub(crate) fn resolve_plain(text: &str) -> Result<Kind, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    if let Some(meaning) = implicit_boolean(text) {
        let shown = quoted(text);
        return Err(format!(
            "{shown} is read differently by different YAML parsers: write {shown} in quotes or {meaning}"
        ));
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return Ok(Kind::Text(text.to_owned()));
    }
    if let Some(number) = number(text) {
        return Ok(Kind::Number(number));
    }
    if is_ambiguous(text) {
        let shown = quoted(text);
        return Err(format!(
            "{shown} is read differently by different YAML parsers: write {shown} in quotes, or a plain decimal number"
        ));
    }
    if is_no_json_number(text) {
        return Err(format!(
            "{text} is no JSON number; write it in quotes if text is meant"
        ));
    }
    Ok(Kind::Text(text.to_owned()))
}

fn implicit_boolean(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "y" => Some("true"),
        "no" | "off" | "n" => Some("false"),
        _ => None,
    }
}

/// A number of the core schema, its digits as written. Leading zeros are left to `is_ambiguous`.
fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        let value = u128::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'))?;
        return serde_json::from_str(&value.to_string()).ok();
    }
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let exponent_at = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(exponent_at);
    // The two spellings that JSON does not have: `.5` and `5.`
    let mantissa = match mantissa.split_once('.') {
        Some(("", fraction)) if !fraction.is_empty() => format!("0.{fraction}"),
        Some((whole, "")) if !whole.is_empty() => whole.to_owned(),
        _ => mantissa.to_owned(),
    };
    let json = format!("{sign}{mantissa}{exponent}");
    // serde_json would take blanks around the number; a scalar has none at its ends.
    serde_json::from_str(&json).ok()
}

/// Octal, binary, signed hexadecimal, grouped digits, base 60 and dates: YAML 1.1 knows them, JSON does not.
fn is_ambiguous(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some(first) = unsigned.chars().next() else {
        return false;
    };
    if !first.is_ascii_digit() && first != '.' {
        return false;
    }
    if unsigned
        .strip_prefix('0')
        .is_some_and(|rest| rest.starts_with(['o', 'b', 'x']))
    {
        return unsigned
            .chars()
            .skip(2)
            .all(|c| c.is_ascii_hexdigit() || c == '_');
    }
    is_numeric_with_extras(unsigned) || is_date(unsigned)
}

/// Digits with zeros in front, `_` between them or `:` between groups, perhaps with a fraction and an exponent.
fn is_numeric_with_extras(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    !exponent.is_empty()
        && exponent.chars().all(|c| c.is_ascii_digit())
        && mantissa.chars().any(|c| c.is_ascii_digit())
        && mantissa.chars().filter(|c| *c == '.').count() <= 1
        && mantissa
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '_' | ':' | '.'))
        && !mantissa.ends_with(':')
}

/// `2026-11-29`, alone or with a time after it.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let day_end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (day, after) = rest.split_at(day_end);
    year.len() == 4
        && digits(year)
        && month.len() <= 2
        && digits(month)
        && (1..=2).contains(&day.len())
        && (after.is_empty() || after.starts_with(['T', 't', ' ']))
}

fn is_no_json_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}
