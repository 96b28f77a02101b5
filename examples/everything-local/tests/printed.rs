//! What the program prints is true.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

/// Ends the server with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_curl_line_works_in_a_shell() {
    let mut server = Running(
        Command::new(env!("CARGO_BIN_EXE_everything-local"))
            .args(["--port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("Everything is served at http://127.0.0.1:"));
    let curl = lines.find(|line| line.starts_with("curl ")).unwrap();
    // The server is about to listen when it prints this.
    let retry = format!("{curl} --retry-connrefused --retry 5");
    let output = Command::new("sh").args(["-c", &retry]).output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(answer.contains("Hello, Ada!"), "{curl}\n{answer}\n{errors}");
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
