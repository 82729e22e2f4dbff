//! Every fenced command of the pages in docs/, each page in its order against a database and a server of its own; and that the
//! pages leave nothing out.

use kslate_tests::page::{pages, play, Played};
use kslate_tests::{root, Cluster, Shim};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Mutex;

/// Pages make database roles, which are the cluster's: one page after the other, and none leaves any.
fn page(name: &str) -> Played {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock();
    let played = catch_unwind(|| play(&format!("docs/{name}.md")));
    let database = Cluster::shared().empty_database();
    let made = database.psql(
        "kslate",
        "select string_agg(quote_ident(rolname), ', ') from pg_roles
         where rolname !~ '^(pg_.*|postgres|kslate(_(server|owner|gateway|user|reader|admin))?)$'",
    );
    if !made.is_empty() {
        database.psql("kslate", &format!("drop role {made}"));
    }
    played.unwrap_or_else(|panic| resume_unwind(panic))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name).with_extension("md")).expect("a page")
}

/// Its Python is run by clients/python/tests/examples/test_pages.py.
#[test]
fn agent_loop() {
    page("agent-loop");
}

#[test]
fn audit_trail() {
    page("audit-trail");
}

#[test]
fn blame() {
    page("blame");
}

#[test]
fn checkpoint_and_resume() {
    page("checkpoint-and-resume");
}

#[test]
fn claims_and_leases() {
    page("claims-and-leases");
}

#[test]
fn design_a_class() {
    page("design-a-class");
}

/// The matrix has a row for each function, and no code that the table of codes does not have.
#[test]
fn errors() {
    let played = page("errors");
    let errors = text("errors");
    let rows = |columns: usize| {
        errors
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
            .filter(move |cells| cells.len() == columns + 2)
    };
    let codes: BTreeSet<&str> = rows(5).map(|cells| cells[1]).collect();
    assert!(codes.len() > 20, "{codes:?}");
    for cells in rows(4).filter(|cells| cells[1] != "operation") {
        for code in cells[4].split_whitespace() {
            assert!(codes.contains(code), "{code} in {cells:?}");
        }
    }
    for function in functions(&played) {
        assert!(
            errors.contains(&format!("| `{function}` |")) || function == "kslate_version",
            "{function}"
        );
    }
}

/// Each route was asked for, with success.
#[test]
fn http() {
    let played = page("http");
    let document = played.stage.shim.anonymous().get("/openapi.json").json();
    let counted = played.stage.shim.anonymous().get("/metrics").text();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let method = method.to_uppercase();
            let line = format!(
                "kslate_http_requests_total{{method=\"{method}\",route=\"{path}\",status=\"20"
            );
            assert!(
                counted.contains(&line),
                "docs/http.md does not show {method} {path}"
            );
        }
    }
}

/// All settings, all metrics, all views; and the key file works.
#[test]
fn operations() {
    let played = page("operations");
    let operations = text("operations");
    let help = played.stage.command("bin/kslate serve --help");
    let settings = help
        .split("[env: ")
        .skip(1)
        .filter_map(|rest| rest.split(['=', ']']).next());
    let counted = played.stage.shim.anonymous().get("/metrics").text();
    let metrics = counted
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let views = played.stage.database.psql(
        "kslate",
        "select 'kslate.' || viewname from pg_views where schemaname = 'kslate'",
    );
    let mut seen = 0;
    for name in settings
        .filter(|name| *name != "KSLATE_SERVER")
        .chain(metrics)
        .chain(views.lines())
    {
        assert!(operations.contains(name), "{name}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
    let keys = played
        .blocks
        .iter()
        .find(|block| block.language == "yaml")
        .expect("a key file");
    let shim = Shim::start(&played.stage.database, &keys.text);
    for (token, identity) in [
        ("w1-token", "remediator/worker-1"),
        ("diag-token", "diagnoser"),
        ("ops-token", "ops"),
    ] {
        let who = shim.api(token).get("/v1/whoami").expect(200);
        assert_eq!(who["identity"], format!("apikey:{identity}"));
    }
}

/// Its Python too is run by clients/python/tests/examples/test_pages.py.
#[test]
fn surviving_a_crash() {
    page("surviving-a-crash");
}

/// Each function was called.
#[test]
fn sql() {
    let played = page("sql");
    let called: String = played
        .blocks
        .iter()
        .filter(|block| block.language == "sql")
        .map(|block| block.text.as_str())
        .collect();
    for function in functions(&played) {
        assert!(
            called.contains(&format!("{function}(")),
            "docs/sql.md does not show {function}"
        );
    }
}

/// The functions that people call.
fn functions(played: &Played) -> Vec<String> {
    let names = played.stage.database.psql(
        "kslate",
        "select p.proname from pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate'
           join pg_proc p on p.oid = d.objid
         where d.classid = 'pg_proc'::regclass and d.deptype = 'e' and p.prorettype <> 'trigger'::regtype order by 1",
    );
    assert!(names.lines().count() > 20, "{names}");
    names.lines().map(str::to_string).collect()
}

#[test]
fn performance() {
    page("performance");
}

/// Its commands are those of the tests.
#[test]
fn guarantees() {
    page("guarantees");
    let text = text("guarantees");
    for name in text.split("--test ").skip(1) {
        let name = name.split([' ', '`']).next().expect("a name");
        let there = ["tests/tests", "fuzz/tests"].map(|folder| root().join(folder));
        let files = [format!("{name}.rs"), format!("{name}/main.rs")];
        assert!(
            there
                .iter()
                .any(|tests| files.iter().any(|file| tests.join(file).is_file())),
            "{name}"
        );
    }
}

/// A new page gets a test.
#[test]
fn no_page_is_forgotten() {
    let tests = fs::read_to_string(root().join("tests/tests/docs.rs")).expect("this file");
    for page in pages() {
        let name = page
            .file_stem()
            .and_then(|name| name.to_str())
            .expect("UTF-8");
        assert!(
            tests.contains(&format!("page(\"{name}\")")),
            "{} is not played",
            page.display()
        );
    }
}

/// Links between the pages, the README and the files of the checkout lead somewhere.
#[test]
fn no_link_is_dead() {
    let mut checked = 0;
    for page in pages().into_iter().chain(
        [
            "README.md",
            "SECURITY.md",
            "classes/README.md",
            "clients/python/README.md",
        ]
        .map(Into::into),
    ) {
        let markdown = fs::read_to_string(root().join(&page)).expect("a page");
        for link in markdown
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => root().join(&page),
                file => root().join(&page).with_file_name(file),
            };
            let Ok(found) = fs::read_to_string(&target) else {
                assert!(target.is_dir(), "{} links to {link}", page.display());
                continue;
            };
            let heading = |line: &str| line.starts_with('#') && slug(line) == anchor;
            assert!(
                anchor.is_empty() || found.lines().any(heading),
                "{} links to {link}",
                page.display()
            );
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The anchor of a heading.
fn slug(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
