//! What the documentation says works. That its Rust compiles is for `cargo test --doc` to say, see
//! `documents` in `src/lib.rs`; here a newcomer follows the README, word for word.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::{
    collections::BTreeMap,
    env, fs,
    io::ErrorKind,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output},
    thread::sleep,
    time::{Duration, Instant},
};

use mcp_edge::Limits;
use mcp_edge_hyper::ServeOptions;

/// Where the README's server listens.
const ADDRESS: &str = "127.0.0.1:3000";
/// The root of the checkout, as the README's manifests write it.
const CHECKOUT: &str = "../mcp-edge/";

#[test]
fn the_ten_line_server_answers_the_curl_line() {
    let readme = Document::read("README.md");
    let main = readme.block("rust,no_run", "fn main()");
    let lines = main.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 10, "the ten-line server has {lines} lines");
    let curl = readme.block("sh", "curl -");
    assert!(readme.text.contains("cargo new greeter") && curl.contains(ADDRESS));

    let new = NewCrate::make("readme-server");
    new.write("src/main.rs", main);
    new.depend_on(readme.block("toml", "[dependencies]"));
    new.cargo(&["build"]);
    wait_for_the_port();
    let mut server = Running(Command::new(new.binary()).spawn().unwrap());
    server.wait_until_it_listens();
    let Output { stdout, stderr, status } =
        Command::new("sh").args(["-c", curl]).output().expect("sh runs");
    let (answer, complaint) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "curl failed: {complaint}");
    let answer: serde_json::Value = serde_json::from_str(&answer)
        .unwrap_or_else(|error| panic!("the answer is not JSON ({error}): {answer}"));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
    assert!(server.0.try_wait().unwrap().is_none(), "it was not our server that answered");
}

#[test]
fn the_tool_that_asks_passes_its_test() {
    let readme = Document::read("README.md");
    let tool = readme.block("rust", "async fn deploy");
    let test = readme.block("rust", "#[tokio::test]");

    let new = NewCrate::make("readme-test");
    new.write("tests/deploy.rs", &format!("{tool}\n{test}"));
    let (normal, dev) =
        (readme.block("toml", "[dependencies]"), readme.block("toml", "[dev-dependencies]"));
    new.depend_on(&format!("{normal}\n{dev}"));
    let output = new.cargo(&["test", "--test", "deploy"]);
    let summary = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(summary.contains("test result: ok. 1 passed"), "{summary}");
}

#[test]
fn every_document_with_rust_is_compiled_as_doctests() {
    let tested = fs::read_to_string(root().join("tests/src/lib.rs")).unwrap();
    for path in documents() {
        let document = Document::read(&path);
        for (info, body) in document.blocks() {
            let is_rust = info.split(',').any(|word| word == "rust");
            assert!(
                is_rust || !info.is_empty(),
                "{path}: a block does not say what it is:\n{body}"
            );
            assert!(!info.contains("ignore"), "{path}: a block is not compiled:\n{body}");
            assert!(
                !is_rust || tested.contains(&format!("include_str!(\"../../{path}\")")),
                "{path} has Rust and is not among the documents of tests/src/lib.rs"
            );
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for path in documents() {
        let document = Document::read(&path);
        let folder = root().join(&path).parent().unwrap().to_owned();
        let targets = document.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let linked = if file.is_empty() { root().join(&path) } else { folder.join(file) };
            assert!(linked.exists(), "{path} links to {file}, which is not there");
            assert!(
                anchor.is_empty()
                    || anchors(&fs::read_to_string(linked).unwrap())
                        .iter()
                        .any(|known| known == anchor),
                "{path} links to {target}, and there is no such heading"
            );
        }
    }
}

#[test]
fn the_design_names_every_limit_and_every_dependency_of_the_core() {
    let design = Document::read("DESIGN.md").text;
    // As `Debug` writes them: `Limits { body_bytes: 4194304, header_count: 100, ..`.
    for options in [format!("{:?}", Limits::default()), format!("{:?}", ServeOptions::default())] {
        let names = options.split([' ', ',']).filter_map(|word| word.strip_suffix(':'));
        for name in names {
            assert!(
                design.contains(&format!("`{name}`")),
                "DESIGN.md: the limit `{name}` is missing"
            );
        }
    }
    let manifest = fs::read_to_string(root().join("crates/mcp-edge/Cargo.toml")).unwrap();
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[dev-dependencies]").unwrap();
    let lines = dependencies.lines().filter(|line| !line.starts_with(['#', '[']));
    let crates: Vec<_> = lines.filter_map(|line| line.split(['.', ' ']).next()).collect();
    assert!(crates.contains(&"serde_json"));
    for name in crates.into_iter().filter(|name| !name.is_empty()) {
        assert!(
            design.contains(&format!("`{name}`")),
            "DESIGN.md: why does the core need `{name}`?"
        );
    }
}

#[test]
fn the_design_says_the_defaults_of_all_limits() {
    let design = Document::read("DESIGN.md").text;
    let (_, section) = design.split_once("\n## Limits\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let mut said = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (names, defaults) = (cells.next().unwrap(), cells.next().unwrap());
        // Between backticks; what stands in parentheses is no limit.
        let names = names.split(" (").next().unwrap();
        let names = names.split('`').skip(1).step_by(2);
        for (name, default) in names.zip(defaults.split(", ")) {
            assert_eq!(said.insert(name, value(default)), None, "`{name}` is there twice");
        }
    }
    let mut known = BTreeMap::new();
    let (limits, options) = (format!("{:?}", Limits::default()), ServeOptions::default());
    let options = format!("{options:?}");
    for options in [&limits, &options] {
        let (_, fields) = options.split_once(" { ").unwrap();
        let fields = fields.strip_suffix(" }").unwrap().split(", ");
        known.extend(fields.map(|field| field.split_once(": ").unwrap()));
    }
    assert!(known.len() > 30, "{known:?}");
    for (name, default) in known {
        let said = said.get(name).unwrap_or_else(|| panic!("no row for `{name}`"));
        assert_eq!(said, default, "the default of `{name}`");
    }
}

/// What the table of limits says, as `Debug` writes it.
fn value(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    if number == "none" {
        return "{}".to_owned();
    }
    let number: u64 = number.replace(',', "").parse().unwrap_or_else(|_| panic!("{text:?}"));
    match unit {
        "" => number.to_string(),
        "KiB" => (number << 10).to_string(),
        "MiB" => (number << 20).to_string(),
        "s" => format!("{:?}", Duration::from_secs(number)),
        "hour" | "hours" => format!("{:?}", Duration::from_secs(number * 3600)),
        "days" => format!("{:?}", Duration::from_secs(number * 86_400)),
        _ => panic!("no unit of the tables: {text:?}"),
    }
}

// The documents.

struct Document {
    path: String,
    text: String,
}

impl Document {
    fn read(path: &str) -> Self {
        Self { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
    }

    /// The fenced blocks, each with what its fence says.
    fn blocks(&self) -> Vec<(&str, &str)> {
        let mut blocks = Vec::new();
        let mut rest = self.text.as_str();
        while let Some((_, fenced)) = rest.split_once("```") {
            let (info, after) = fenced.split_once('\n').expect("a fence ends its line");
            let (body, after) = after.split_once("```").expect("a block ends");
            blocks.push((info, body));
            rest = after;
        }
        blocks
    }

    /// The one block of a language that contains something.
    fn block(&self, language: &str, part: &str) -> &str {
        let mut found = self
            .blocks()
            .into_iter()
            .filter(|(info, body)| *info == language && body.contains(part));
        let (Some((_, block)), None) = (found.next(), found.next()) else {
            panic!("{} must have exactly one `{language}` block with `{part}`", self.path);
        };
        block
    }
}

/// Every Markdown file that is there to be read, from the root.
fn documents() -> Vec<String> {
    let markdown = |folder: &str| -> Vec<String> {
        let names = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap());
        let names = names.map(|entry| format!("{folder}{}", entry.file_name().to_string_lossy()));
        names.filter(|name| name.ends_with(".md")).collect()
    };
    let folders = ["", "docs/", "bench/reference/", "tests/fixtures/"];
    let documents: Vec<_> = folders.into_iter().flat_map(markdown).collect();
    assert!(documents.len() >= 7, "{documents:?}");
    documents
}

/// The headings of a document as links name them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let anchor = |heading: &str| {
        let kept = heading.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect::<String>()
    };
    headings.map(anchor).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

// The newcomer.

/// A crate outside of the workspace, as `cargo new` makes it.
struct NewCrate {
    /// Removed with everything in it.
    folder: PathBuf,
    name: &'static str,
}

impl NewCrate {
    fn make(name: &'static str) -> Self {
        let folder = env::temp_dir().join(format!("mcp-edge-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let new = Self { folder, name };
        run(Command::new(cargo()).args(["new", "--vcs", "none", name]).current_dir(&new.folder));
        // The newest versions may not be on this machine; those of the workspace are.
        fs::copy(root().join("Cargo.lock"), new.path("Cargo.lock")).unwrap();
        new
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(self.name).join(file)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Puts dependencies in the place of the empty table that is there, with the path of the real
    /// checkout.
    fn depend_on(&self, dependencies: &str) {
        let manifest = fs::read_to_string(self.path("Cargo.toml")).unwrap();
        let (package, _) = manifest.split_once("[dependencies]").unwrap();
        assert!(dependencies.contains(CHECKOUT));
        let checkout = format!("{}/", root().display());
        let dependencies = dependencies.replace(CHECKOUT, &checkout);
        self.write("Cargo.toml", &format!("{package}{dependencies}"));
    }

    /// Runs cargo in the workspace's target folder, where most is compiled already.
    fn cargo(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(cargo());
        // Build scripts look at these, and would run again for those of this test.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        run(command
            .args(arguments)
            .args(["--quiet", "--offline"])
            .current_dir(self.path(""))
            .env("CARGO_TARGET_DIR", target())
            // As in the workspace.
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            .env("CARGO_PROFILE_TEST_DEBUG", "line-tables-only"))
    }

    fn binary(&self) -> PathBuf {
        target().join("debug").join(self.name)
    }
}

impl Drop for NewCrate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A server that ends with the test.
struct Running(Child);

impl Running {
    fn wait_until_it_listens(&mut self) {
        let began = Instant::now();
        while TcpStream::connect(ADDRESS).is_err() {
            let ended = self.0.try_wait().unwrap();
            assert!(ended.is_none(), "the README's server ended by itself: {ended:?}");
            assert!(began.elapsed() < Duration::from_secs(30), "nobody listens at {ADDRESS}");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits a while if somebody else has the port: it is the one that the README names.
fn wait_for_the_port() {
    let address: SocketAddr = ADDRESS.parse().unwrap();
    let began = Instant::now();
    loop {
        match TcpListener::bind(address) {
            Ok(_) => return,
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "another program listens at {ADDRESS}, which the README's server needs: end it, \
                     and run this test again"
                );
                sleep(Duration::from_millis(500));
            }
            Err(error) => panic!("cannot listen at {ADDRESS}: {error}"),
        }
    }
}

fn cargo() -> std::ffi::OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = [output.stdout.as_slice(), &output.stderr].concat();
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&told));
    output
}
