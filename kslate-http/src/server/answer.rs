//! Accepted requests: the database's JSON, copied as it is.

use axum::http::header::{HeaderValue, CONTENT_TYPE};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::db::Line;
use super::error::Error;

/// What a handler answers.
pub type Answered = Result<Answer, Error>;

/// A 2xx and its body.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    body: String,
    took_over: bool,
}

/// Told to the layer around all routes: a claim displaced another identity's.
#[derive(Debug, Clone, Copy)]
pub struct TookOver;

impl Answer {
    /// 200 with this body.
    pub fn ok(body: impl Into<String>) -> Self {
        Self {
            status: StatusCode::OK,
            body: body.into(),
            took_over: false,
        }
    }

    /// 201 with this body.
    pub fn created(body: String) -> Self {
        Self {
            status: StatusCode::CREATED,
            ..Self::ok(body)
        }
    }

    /// 200 with the answer of a claim, whose note tells whether it took over.
    pub fn claim(line: Line) -> Self {
        Self {
            took_over: line.note.as_deref() == Some("true"),
            ..Self::ok(line.json)
        }
    }
}

impl From<Line> for Answer {
    fn from(line: Line) -> Self {
        Self::ok(line.json)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (
            self.status,
            [(CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            self.body,
        )
            .into_response();
        if self.took_over {
            response.extensions_mut().insert(TookOver);
        }
        response
    }
}

/// A list: `{ <head>…, "<plural>": [rows], "next": cursor | null }`. The note of a row is its cursor as JSON; where more than
/// `page_size` rows came, the last is only the proof that there are more.
pub fn list(head: &[(&str, &str)], plural: &str, mut lines: Vec<Line>, page_size: usize) -> Answer {
    let more = lines.len() > page_size;
    lines.truncate(page_size);
    let next = if more {
        lines.last().and_then(|line| line.note.clone())
    } else {
        None
    };
    let mut body = rows(head, plural, &lines);
    body.push_str(",\"next\":");
    body.push_str(next.as_deref().unwrap_or("null"));
    body.push('}');
    Answer::ok(body)
}

/// A list that has no pages and no `next`.
pub fn whole_list(head: &[(&str, &str)], plural: &str, lines: &[Line]) -> Answer {
    Answer::ok(rows(head, plural, lines) + "}")
}

fn rows(head: &[(&str, &str)], plural: &str, lines: &[Line]) -> String {
    let mut body =
        String::with_capacity(64 + lines.iter().map(|line| line.json.len() + 1).sum::<usize>());
    body.push('{');
    for (name, value) in head {
        body.push_str(&format!("\"{name}\":{},", serde_json::Value::from(*value)));
    }
    body.push_str(&format!("\"{plural}\":["));
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            body.push(',');
        }
        body.push_str(&line.json);
    }
    body.push(']');
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> Vec<Line> {
        (1..=count)
            .map(|seq| Line {
                json: format!("{{\"seq\":{seq}}}"),
                note: Some(seq.to_string()),
            })
            .collect()
    }

    #[test]
    fn pages() {
        let head = [("record", "incidents/inc-1")];
        for (count, body) in [
            (
                0,
                r#"{"record":"incidents/inc-1","entries":[],"next":null}"#,
            ),
            (
                2,
                r#"{"record":"incidents/inc-1","entries":[{"seq":1},{"seq":2}],"next":null}"#,
            ),
            (
                3,
                r#"{"record":"incidents/inc-1","entries":[{"seq":1},{"seq":2}],"next":2}"#,
            ),
        ] {
            assert_eq!(list(&head, "entries", lines(count), 2).body, body);
        }
        assert_eq!(
            whole_list(&[], "blame", &lines(1)).body,
            r#"{"blame":[{"seq":1}]}"#
        );
    }
}
