//! What the program prints is true.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Output, Stdio},
};

/// A server, which ends with the test, and the line by which it says how to call it.
struct Running {
    child: Child,
    curl: String,
}

impl Running {
    fn start(environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_everything-local"))
            .args(["--port", "0"])
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut running = Self { child, curl: String::new() };
        let mut lines = BufReader::new(stdout).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("Everything is served at http://127.0.0.1:"));
        running.curl = lines.find(|line| line.starts_with("curl ")).unwrap();
        running
    }

    /// Runs the line with these options in a shell.
    fn curl(&self, options: &str) -> Output {
        // The server is about to listen when it prints the line.
        let line = format!("{} --retry-connrefused --retry 5 {options}", self.curl);
        Command::new("sh").args(["-c", &line]).output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_curl_line_works_in_a_shell() {
    let server = Running::start(&[]);
    let output = server.curl("");
    let answer = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(answer.contains("Hello, Ada!"), "{}\n{answer}\n{errors}", server.curl);
}

#[test]
fn a_response_names_its_process_in_tests_alone() {
    let said = |server: &Running| {
        let output = server.curl("--include").stdout;
        let head = String::from_utf8(output).unwrap().to_lowercase();
        let name = "mcp-edge-process-id: ";
        head.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))
    };
    let server = Running::start(&[("MCP_EDGE_TEST_PROCESS_ID", "1")]);
    assert_eq!(said(&server), Some(server.child.id().to_string()));
    assert_eq!(said(&Running::start(&[])), None);
}

#[test]
fn a_wrong_option_is_explained() {
    for args in [&["--prot", "1"][..], &["--port", "x"], &["--port"], &["--port", "0", "x"]] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_everything-local")).args(args).output().unwrap();
        assert!(!output.status.success());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("usage: everything-local [--port N]"), "{text}");
    }
}
