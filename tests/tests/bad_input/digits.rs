//! Numbers and texts that are odd but good come back as they were sent.

use crate::{Stage, HELD, RECORD};

const LONG: &str = "123456789012345678901234567890";
const FRACTION: &str = "-0.123456789012345678901234567890";

#[test]
fn thirty_digits_everywhere() {
    let stage = Stage::new();
    let (diagnoser, w1) = (stage.api("diag-token"), stage.api("w1-token"));
    let has = |path: &str, text: &str| {
        let answer = diagnoser.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(answer.text().contains(text), "{path}: {}", answer.text());
    };

    // A value, alone and within; in a conflict, in history.
    let value = format!(r#"{{"a":{LONG},"b":[{FRACTION},1.10]}}"#);
    let body = format!("{{\"value\": {value}, \"expected_version\": 1}}");
    let hypotheses = format!("{RECORD}/fields/hypotheses");
    diagnoser.put(&hypotheses, &body).expect(200);
    for path in [&hypotheses, RECORD, &format!("{RECORD}/history")] {
        has(path, LONG);
        has(path, FRACTION);
        has(path, "1.10");
    }
    let conflict = diagnoser.put(&hypotheses, &body);
    conflict.refused(409, "VERSION_CONFLICT");
    assert!(conflict.text().contains(LONG), "{}", conflict.text());

    // Entries, several fields, first values, results, documents.
    let entry = format!("{{\"value\": [{LONG}]}}");
    w1.post(&format!("{RECORD}/fields/actions_taken/entries"), entry)
        .expect(201);
    has(&format!("{RECORD}/fields/actions_taken/entries"), LONG);
    let change = format!(
        r#"{{"changes": [{{"field": "hypotheses", "value": {FRACTION}, "expected_version": 2}}]}}"#
    );
    diagnoser.patch(RECORD, change).expect(200);
    has(&hypotheses, &format!("\"value\":{FRACTION},"));
    let first = format!("{{\"fields\": {{\"hypotheses\": {LONG}}}}}");
    let new = "/v1/records/incidents/inc-9";
    diagnoser.put(new, first).expect(201);
    has(
        &format!("{new}/history"),
        &format!("\"value\":{{\"status\": \"open\", \"hypotheses\": {LONG}}}"),
    );
    let done = format!(
        "{{\"claim_id\": \"{}\", \"value\": {LONG}}}",
        stage.claim_id
    );
    w1.post(&format!("{HELD}/fields/remediation/complete"), done)
        .expect(200);
    has(
        &format!("{HELD}/fields/remediation"),
        &format!("\"value\":{LONG},"),
    );
    let document = format!(
        r#"{{"document": {{"goal": {LONG}, "decisions": {FRACTION}, "progress": 1.10, "open_questions": 1e30}}}}"#
    );
    w1.put(&format!("{RECORD}/checkpoint"), document)
        .expect(200);
    let loaded = w1.get(&format!("{RECORD}/checkpoint")).text();
    for digits in [LONG, FRACTION, "1.10", "1000000000000000000000000000000"] {
        assert!(loaded.contains(digits), "{loaded}");
    }

    // A filter tells two apart that a float would not.
    let found = |number: &str| {
        let path = format!("/v1/records/incidents?filter=%7B%22hypotheses%22:{number}%7D");
        let body = diagnoser.get(&path).expect(200);
        body["records"].as_array().map(Vec::len)
    };
    assert_eq!(found(LONG), Some(1));
    assert_eq!(found(&format!("[{LONG},1]")), Some(1));
    assert_eq!(found("123456789012345678901234567891"), Some(0));
    assert_eq!(found(&format!("{LONG}.0")), Some(1), "the same jsonb value");
    // And so does an idempotency key.
    let body = |number: &str| format!("{{\"value\": {number}}}");
    let key = [("Idempotency-Key", "digits")];
    let entries = format!("{RECORD}/fields/actions_taken/entries");
    let once = w1.request("POST", &entries, &key, body(LONG).as_bytes());
    let twice = w1.request("POST", &entries, &key, body(LONG).as_bytes());
    assert_eq!((once.status, once.text()), (201, twice.text()));
    let other = body("123456789012345678901234567891");
    w1.request("POST", &entries, &key, other.as_bytes())
        .refused(409, "IDEMPOTENCY_CONFLICT");
}

#[test]
fn odd_but_good_values_survive() {
    let stage = Stage::new();
    let diagnoser = stage.api("diag-token");
    let hypotheses = format!("{RECORD}/fields/hypotheses");
    let mut version = 1;
    let mut kept = |sent: &str, stored: &str| {
        let body = format!("{{\"value\": {sent}, \"expected_version\": {version}}}");
        diagnoser.put(&hypotheses, body).expect(200);
        version += 1;
        let answer = diagnoser.get(&hypotheses);
        let expected = format!("\"value\":{stored},\"version\":{version},");
        assert!(
            answer.text().contains(&expected),
            "{sent}: {}",
            answer.text()
        );
    };
    for same in [
        "null",
        "true",
        "\"\"",
        "[]",
        "{}",
        "0",
        "-1",
        r#""\\u0000""#,
        r#""\\ud800""#,
        r#""\"\\""#,
        r#""\u0001\u001f""#,
        "\"\u{7f}\u{200b}\u{feff}\u{10ffff}\"",
        "\"\u{e9}\u{1f980}\"",
        r#"{"": 1}"#,
        r#"{"a.b": {"$": [null]}}"#,
        "\"'; drop table kslate.record; --\"",
        "\"null\"",
        "\"$1 {} %s\"",
    ] {
        kept(same, same);
    }
    kept(r#""\u00e9\ud83e\udd80\/""#, "\"\u{e9}\u{1f980}/\"");
    kept("1e2", "100");
    kept("1E400", &format!("1{}", "0".repeat(400)));
    kept("-0.0", "0.0");
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    kept(&deep, &deep);
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    kept(&large, &large);
    // An optional key that is null is the same as none; the media types that curl sends by itself.
    let body = format!(
        "{{\"value\": 1, \"expected_version\": {version}, \"evidence\": null, \"claim_id\": null}}"
    );
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    diagnoser
        .request("PUT", &hypotheses, &form, body.as_bytes())
        .expect(200);
    for media in ["application/json; charset=utf-8", "APPLICATION/JSON"] {
        let path = format!("{RECORD}/fields/status");
        diagnoser
            .request(
                "PUT",
                &path,
                &[("Content-Type", media)],
                br#"{"value": "open", "expected_version": 9}"#,
            )
            .refused(409, "VERSION_CONFLICT");
    }
    // Percent-encoding that need not be.
    let encoded = diagnoser.get("/v1/records/incidents/%69nc%2D1/fields/%68ypotheses");
    assert_eq!(encoded.expect(200)["record"], "incidents/inc-1");
    // Keys at the edge of what is allowed.
    for key in ["a", "0", "A.b_c~d-e", "a..b", &"k".repeat(128)] {
        let path = format!("/v1/records/incidents/{key}");
        diagnoser.put(&path, "").expect(201);
        assert_eq!(
            diagnoser.get(&path).expect(200)["record"],
            format!("incidents/{key}")
        );
    }
}
