//! The spelling of names. All are ASCII, so that bytes, characters and `COLLATE "C"` agree.

/// True for a class name: a small letter, then up to 62 small letters, digits, `_` or `-`.
pub fn is_class(name: &str) -> bool {
    is_word(name)
}

/// True for a field or role name; the same spelling as a class name.
pub fn is_field(name: &str) -> bool {
    is_word(name)
}

/// True for the key of a record: a letter or digit, then up to 127 letters, digits, `.`, `_`, `~` or `-`.
pub fn is_key(key: &str) -> bool {
    let bytes = key.as_bytes();
    bytes.len() <= 128
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b'-'))
}

/// `incidents/inc-4471` as class and key; `None` unless both are well spelled.
pub fn split_record(record: &str) -> Option<(&str, &str)> {
    let (class, key) = record.split_once('/')?;
    (is_class(class) && is_key(key)).then_some((class, key))
}

fn is_word(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}
