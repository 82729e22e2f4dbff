//! The spelling of classes, keys, fields and records.

use kslate_class::name::{is_class, is_field, is_key, split_record};

#[test]
fn classes_fields_and_roles_are_small_words() {
    for good in ["a", "incidents", "a1_b-c", &"x".repeat(63)] {
        assert!(is_class(good) && is_field(good), "{good}");
    }
    for bad in [
        "",
        "A",
        "1a",
        "_a",
        "-a",
        "a.b",
        "a b",
        "a\n",
        "ä",
        "aÄ",
        "a/b",
        &"x".repeat(64),
    ] {
        assert!(!is_class(bad) && !is_field(bad), "{bad:?}");
    }
}

#[test]
fn keys_are_what_goes_into_a_path_unescaped() {
    for good in ["1", "inc-4471", "A.b_c~d", &"k".repeat(128)] {
        assert!(is_key(good), "{good}");
    }
    for bad in [
        "",
        ".",
        "..",
        "-a",
        "_a",
        "~a",
        "a/b",
        "a b",
        "a%20",
        "ä",
        "a\0",
        "a\n",
        &"k".repeat(129),
    ] {
        assert!(!is_key(bad), "{bad:?}");
    }
}

#[test]
fn records_are_class_and_key() {
    assert_eq!(
        split_record("incidents/inc-4471"),
        Some(("incidents", "inc-4471"))
    );
    for bad in [
        "incidents",
        "incidents/",
        "/inc-1",
        "incidents/a/b",
        "Incidents/a",
        "incidents//a",
        "incidents/..",
        "",
    ] {
        assert_eq!(split_record(bad), None, "{bad:?}");
    }
}
