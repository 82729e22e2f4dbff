use std::process::ExitCode;

fn main() -> ExitCode {
    kslate_http::cli::run()
}
