//! What is refused alike on every route: bodies, names in the path, tokens, methods, media types, parameters, headers.

use crate::{nested, routes, Stage, READS, RECORD};
use kslate_tests::exchange;

/// Bodies that no route may take; each is MALFORMED.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    let mut all = vec![
        text("broken JSON", r#"{"value": "#),
        text("no JSON", "value=1"),
        text("blank", " "),
        text("an array", "[]"),
        text("an array of a good body", r#"[{"value": 1}]"#),
        text("a string", r#""x""#),
        text("null", "null"),
        text("two objects", "{} {}"),
        text("a comma too many", r#"{"value": 1,}"#),
        text("single quotes", "{'value': 1}"),
        text("a comment", r#"{"value": 1 /* one */}"#),
        text("NaN", r#"{"value": NaN}"#),
        text("Infinity", r#"{"value": -Infinity}"#),
        text("a leading zero", r#"{"value": 01}"#),
        text("half an exponent", r#"{"value": 1e}"#),
        text("a number beyond jsonb", r#"{"value": 1e200000}"#),
        text("a raw line break in a string", "{\"value\": \"a\nb\"}"),
        text("an unknown escape", r#"{"value": "\x41"}"#),
        text("an unknown key", r#"{"nonsense": 1}"#),
        text("a key in capitals", r#"{"Value": 1, "Reason": "x"}"#),
        text("an empty key", r#"{"": 1}"#),
        text("a duplicate key", r#"{"value": 1, "value": 2}"#),
        text(
            "a duplicate key, escaped",
            r#"{"reason": "a", "re\u0061son": "b"}"#,
        ),
        text(
            "a duplicate key within",
            r#"{"value": {"a": 1, "b": {"c": 1, "c": 1}}, "document": {"a": 1, "a": 1}}"#,
        ),
        text(
            "\\u0000",
            r#"{"value": "a\u0000b", "reason": "a\u0000b", "document": {"a": "a\u0000b"}}"#,
        ),
        text("\\u0000 in a key", r#"{"value": {"a\u0000b": 1}}"#),
        text(
            "a lone high surrogate",
            r#"{"value": "\ud800", "reason": "\ud800"}"#,
        ),
        text(
            "a lone low surrogate",
            r#"{"value": "\udc00x", "reason": "\udc00"}"#,
        ),
        text("surrogates the wrong way", r#"{"value": "\udc00\ud800"}"#),
        text("200 levels", &nested("value", 200)),
        text(
            "200 levels of objects",
            &format!(
                "{{\"document\": {}1{}}}",
                r#"{"a":"#.repeat(200),
                "}".repeat(200)
            ),
        ),
        text("100,000 levels", &nested("value", 100_000)),
    ];
    all.push(("invalid UTF-8", b"{\"value\": \"\xff\xfe\"}".to_vec()));
    all.push(("an overlong NUL", b"{\"reason\": \"\xc0\x80\"}".to_vec()));
    all.push((
        "a surrogate in UTF-8",
        b"{\"value\": \"\xed\xa0\x80\"}".to_vec(),
    ));
    all.push(("cut UTF-8", b"{\"value\": \"\xe2\x82\"}".to_vec()));
    all.push(("UTF-16", b"\xff\xfe{\0}\0".to_vec()));
    all.push(("a byte order mark", b"\xef\xbb\xbf{}".to_vec()));
    all
}

#[test]
fn bodies_on_every_route() {
    let stage = Stage::new();
    for route in routes() {
        let path = format!("{RECORD}{}", route.path);
        let api = stage.api(route.token);
        stage.without_trace(&path, || {
            for (name, body) in bodies() {
                let what = format!("{name}: {} {path}", route.method);
                let answer = api.request(route.method, &path, &[], &body);
                stage.refused(&what, &answer, 400, "MALFORMED");
            }
            let big = format!("{{\"value\": \"{}\"}}", "x".repeat(5_000_000));
            let answer = api.request(route.method, &path, &[], big.as_bytes());
            stage.refused("5 MB", &answer, 413, "PAYLOAD_TOO_LARGE");
        });
    }
    let next = "/v1/classes/incidents/claim";
    stage.without_trace(next, || {
        for (name, body) in bodies() {
            let answer = stage.api("w1-token").post(next, &body);
            stage.refused(&format!("{name}: {next}"), &answer, 400, "MALFORMED");
        }
    });
}

/// Keys of a record that are none.
fn odd_keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "a%2Fb",
        "%2F",
        "..",
        ".",
        "%2e%2e",
        "..%2F..%2Fclasses",
        "%00",
        "a%00b",
        "%FF",
        "%C3%28",
        "%ED%A0%80",
        "a%20b",
        "%0A",
        "a%0D%0Ab",
        "-a",
        "_a",
        "~a",
        "a'b",
        "a;b",
        "a%22b",
        "a%25b",
        "%C3%A9",
        "%E2%80%AE",
        "a+b",
        "a,b",
        "a:b",
        "a*",
        "a%3Fb",
    ]
    .map(str::to_string)
    .to_vec();
    keys.push("k".repeat(129));
    keys.push("k".repeat(500));
    keys
}

#[test]
fn odd_keys_on_every_route() {
    let stage = Stage::new();
    for key in odd_keys() {
        stage.without_trace(&key, || {
            for route in routes() {
                let path = format!("/v1/records/incidents/{key}{}", route.path);
                let body = route.body.to_string();
                let answer =
                    stage
                        .api(route.token)
                        .request(route.method, &path, &[], body.as_bytes());
                stage.refused(
                    &format!("{} {path}", route.method),
                    &answer,
                    400,
                    "MALFORMED",
                );
            }
            for read in READS {
                let path = format!("/v1/records/incidents/{key}{read}");
                stage.refused(&path, &stage.api("diag-token").get(&path), 400, "MALFORMED");
            }
        });
    }
    // Raw bytes that no client would send.
    for path in [
        &b"/v1/records/incidents/\xff"[..],
        b"/v1/records/incidents/\xc3\xa9",
    ] {
        let mut request = b"GET ".to_vec();
        request.extend_from_slice(path);
        request.extend_from_slice(
            b" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer diag-token\r\nConnection: close\r\n\r\n",
        );
        let answer = exchange(stage.shim.address(), &request).expect("an answer");
        assert_eq!(answer.status, 400, "{path:?}: {}", answer.text());
    }
    stage.api("diag-token").get(RECORD).expect(200);
}

#[test]
fn odd_fields_and_classes() {
    let stage = Stage::new();
    let w1 = stage.api("w1-token");
    stage.without_trace("odd fields", || {
        for (field, status, error) in [
            ("nope", 404, "NOT_FOUND"),
            ("Status", 404, "NOT_FOUND"),
            ("%2F", 400, "MALFORMED"),
            ("%00", 400, "MALFORMED"),
            ("%FF", 400, "MALFORMED"),
            ("..", 404, "NOT_FOUND"),
            ("%C3%A9", 404, "NOT_FOUND"),
        ] {
            for (method, rest, body) in [
                ("GET", "", ""),
                ("PUT", "", r#"{"value": 1, "expected_version": 0}"#),
                ("POST", "/entries", r#"{"value": 1}"#),
                ("GET", "/entries", ""),
                ("POST", "/claim", ""),
            ] {
                let path = format!("{RECORD}/fields/{field}{rest}");
                let answer = w1.request(method, &path, &[], body.as_bytes());
                stage.refused(&format!("{method} {path}"), &answer, status, error);
            }
        }
    });
    stage.without_trace("odd classes", || {
        for (class, status, error) in [
            ("nope", 404, "NOT_FOUND"),
            ("Incidents", 400, "MALFORMED"),
            ("%2F", 400, "MALFORMED"),
            ("%00", 400, "MALFORMED"),
            ("%FF", 400, "MALFORMED"),
            ("..", 400, "MALFORMED"),
        ] {
            for route in routes() {
                let path = format!("/v1/records/{class}/inc-1{}", route.path);
                let body = route.body.to_string();
                let answer =
                    stage
                        .api(route.token)
                        .request(route.method, &path, &[], body.as_bytes());
                stage.refused(&format!("{} {path}", route.method), &answer, status, error);
            }
            for path in [
                format!("/v1/records/{class}"),
                format!("/v1/classes/{class}"),
                format!("/v1/records/{class}/inc-1/history"),
            ] {
                stage.refused(&path, &w1.get(&path), status, error);
            }
            let path = format!("/v1/classes/{class}/claim");
            let answer = w1.post(&path, r#"{"field": "remediation"}"#);
            stage.refused(&path, &answer, status, error);
        }
    });
    stage.without_trace("no such record", || {
        for route in routes().iter().skip(1) {
            let path = format!("/v1/records/incidents/inc-999{}", route.path);
            let body = route.body.to_string();
            let answer = stage
                .api(route.token)
                .request(route.method, &path, &[], body.as_bytes());
            stage.refused(
                &format!("{} {path}", route.method),
                &answer,
                404,
                "NOT_FOUND",
            );
        }
        for read in READS {
            let path = format!("/v1/records/incidents/inc-999{read}");
            stage.refused(&path, &w1.get(&path), 404, "NOT_FOUND");
        }
    });
}

#[test]
fn tokens_on_every_route() {
    let stage = Stage::new();
    stage.without_trace("tokens", || {
        for (token, status, error) in [
            ("", 401, "UNAUTHENTICATED"),
            ("wrong", 401, "UNAUTHENTICATED"),
            ("w1-token2", 401, "UNAUTHENTICATED"),
            ("W1-TOKEN", 401, "UNAUTHENTICATED"),
            ("stranger-token", 403, "SCOPE_DENIED"),
        ] {
            let api = stage.api(token);
            let mut answers = Vec::new();
            for route in routes() {
                let path = format!("{RECORD}{}", route.path);
                let body = route.body.to_string();
                answers.push((
                    path.clone(),
                    api.request(route.method, &path, &[], body.as_bytes()),
                ));
            }
            for read in READS {
                let path = format!("{RECORD}{read}");
                answers.push((path.clone(), api.get(&path)));
            }
            let next = "/v1/classes/incidents/claim";
            answers.push((
                next.to_string(),
                api.post(next, r#"{"field": "remediation"}"#),
            ));
            let list = "/v1/records/incidents";
            answers.push((list.to_string(), api.get(list)));
            for (path, answer) in answers {
                stage.refused(&format!("token {token:?}: {path}"), &answer, status, error);
                let challenge = (status == 401).then_some("Bearer");
                assert_eq!(answer.header("www-authenticate"), challenge, "{path}");
            }
        }
        let api = stage.shim.anonymous();
        for header in [
            "Basic dzE6dzE=",
            "Bearer",
            "Bearer ",
            "w1-token",
            "Bearer w1-token x",
        ] {
            let answer = api.request("GET", RECORD, &[("Authorization", header)], b"");
            stage.refused(header, &answer, 401, "UNAUTHENTICATED");
        }
        let twice = [
            ("Authorization", "Bearer w1-token"),
            ("Authorization", "Bearer w1-token"),
        ];
        let answer = api.request("GET", RECORD, &twice, b"");
        stage.refused("two tokens", &answer, 401, "UNAUTHENTICATED");
    });
}

#[test]
fn methods_media_types_parameters_and_keys_on_every_route() {
    let stage = Stage::new();
    for route in routes() {
        let path = format!("{RECORD}{}", route.path);
        let api = stage.api(route.token);
        let body = route.body.to_string();
        let send = |method: &str, path: &str, headers: &[(&str, &str)]| {
            api.request(method, path, headers, body.as_bytes())
        };
        stage.without_trace(&path, || {
            for method in ["DELETE", "OPTIONS", "TRACE", "BREW"] {
                let answer = send(method, &path, &[]);
                stage.refused(
                    &format!("{method} {path}"),
                    &answer,
                    405,
                    "METHOD_NOT_ALLOWED",
                );
                let allowed = answer.header("allow").unwrap_or_default();
                assert!(allowed.contains(route.method), "{method} {path}: {allowed}");
            }
            for media in [
                "text/plain",
                "text/json",
                "application/xml",
                "multipart/form-data",
                "application/yaml",
                "application/json; charset=latin1",
                "nonsense",
            ] {
                let answer = send(route.method, &path, &[("Content-Type", media)]);
                stage.refused(
                    &format!("{media} {path}"),
                    &answer,
                    415,
                    "UNSUPPORTED_MEDIA_TYPE",
                );
            }
            let answer = send(route.method, &path, &[("Content-Encoding", "gzip")]);
            stage.refused("gzip", &answer, 415, "UNSUPPORTED_MEDIA_TYPE");
            for query in [
                "nonsense=1",
                "x",
                "role=a&role=b",
                "page_size=1",
                "%FF=1",
                "role=%00",
                "a%00=1",
            ] {
                let path = format!("{path}?{query}");
                stage.refused(&path, &send(route.method, &path, &[]), 400, "MALFORMED");
            }
            if route.path.ends_with("/renew") {
                return;
            }
            let long = "k".repeat(129);
            for key in ["", &long, "caf\u{e9}", "tab\there"] {
                let answer = send(route.method, &path, &[("Idempotency-Key", key)]);
                stage.refused(&format!("key {key:?} {path}"), &answer, 400, "MALFORMED");
            }
            let twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
            let answer = send(route.method, &path, &twice);
            stage.refused(&format!("two keys {path}"), &answer, 400, "MALFORMED");
        });
    }
    for read in READS {
        for query in [
            "nonsense=1",
            "page_size=1&page_size=1",
            "%FF",
            "role=%FF",
            "after=1&after=2",
        ] {
            let path = format!("{RECORD}{read}?{query}");
            stage.refused(&path, &stage.api("w1-token").get(&path), 400, "MALFORMED");
        }
    }
    for path in [
        "/v1/records/incidents/x/resume",
        "/v1",
        "/",
        "/v2/records",
        "/v1/records/incidents/inc-1/",
        "/v1/records",
    ] {
        stage.refused(path, &stage.api("w1-token").get(path), 404, "NOT_FOUND");
    }
}
