//! The code in the guide that is more than an example of its page: each line of the table for those who come from tokio
//! compiles, and each template compiles and runs.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use mini_tests::net_support::ScratchDir;

/// The third cells of the table whose head says "a line of it".
fn lines(chapter: &str) -> Vec<String> {
    let table = chapter.lines().skip_while(|line| !line.ends_with("| a line of it |")).skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let (_, cell) = row.split_once("| `").and_then(|_| row.rsplit_once(" | `")).expect("a row with a line");
            cell.strip_suffix("` |").expect("code to the end of the row").replace("\\|", "|")
        })
        .collect()
}

/// A function for each line, in one program.
fn program(lines: &[String]) -> String {
    let mut text = "#![allow(unused, unreachable_code)]\nuse std::time::Duration;\n\n".to_owned();
    for (number, line) in lines.iter().enumerate() {
        writeln!(text, "async fn line_{number}() -> Result<(), Box<dyn std::error::Error>> {{").unwrap();
        writeln!(text, "    {line}\n    Ok(())\n}}\n").unwrap();
    }
    text + "fn main() {}\n"
}

/// What is run of each template: its own `main`, or what uses it.
const RUNS: [&str; 4] = [
    "fn main() { template_main().unwrap() }",
    "fn main() { it_beats_sixty_times_a_minute() }",
    "fn main() { a_client_is_answered(); an_hour_passes_at_once() }",
    r#"fn main() {
        mini::block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let connections = Group::new();
            let server = mini::spawn(serve(listener, connections.clone()));
            client.write_all(b"hello").await.unwrap();
            let mut answer = [0; 5];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"hello");
            assert!(connections.shutdown(mini::task::Reason::Requested).await.is_clean());
            server.await.unwrap().unwrap();
        });
    }"#,
];

/// A chapter of the guide.
fn chapter(name: &str) -> String {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/guide");
    fs::read_to_string(guide.join(name)).expect("the chapter")
}

/// The blocks of code of a chapter.
fn blocks(chapter: &str) -> Vec<String> {
    let blocks = chapter.split("```rust").skip(1).map(|rest| rest.split_once("```").expect("an end").0);
    blocks.map(|block| block.split_once('\n').expect("code").1.to_owned()).collect()
}

/// The templates, and the server with a protocol of its own, as programs: `main` has another name, and tests are
/// functions.
fn templates() -> Vec<String> {
    let mut templates = blocks(&chapter("templates.md"));
    // The library runs with its test in the place of what shows how to use it.
    let test = templates.remove(2);
    let (library, _use) = templates[1].split_once("// In a program").expect("a library and its use");
    templates[1] = format!("{library}{test}");
    templates.extend(
        blocks(&chapter("servers.md"))
            .into_iter()
            .filter(|block| block.contains("async fn serve(listener: TcpListener")),
    );
    templates.into_iter().map(renamed).collect()
}

/// A program of the guide as a part of another one.
fn renamed(block: String) -> String {
    let block = block.replace("async fn main(", "async fn template_main(").replace("#[test]\n", "");
    let grace_of_main = ["#[mini::main(grace = \"5s\")]", "#[mini::main(grace = \"10s\")]"]; // it is for `main` alone
    let block = grace_of_main.iter().fold(block, |block, attribute| block.replace(attribute, "#[mini::main]"));
    block.replace("#[mini::test(", "#[mini::main(flavor = \"current_thread\", ")
}

/// Compiles and runs programs that are made of a template and what uses it.
fn run<'a>(name: &str, programs: impl Iterator<Item = (&'a String, &'a str)>) {
    let directory = ScratchDir::new(name);
    let cases = trybuild::TestCases::new();
    for (number, (template, run)) in programs.enumerate() {
        let path = directory.path().join(format!("{name}-{number}.rs"));
        fs::write(&path, format!("#![allow(dead_code)]\n{template}\n{run}\n")).unwrap();
        cases.pass(path);
    }
    drop(cases); // now they are compiled and run
}

#[test]
fn every_template_compiles_and_runs() {
    let templates = templates();
    assert_eq!(templates.len(), RUNS.len());
    run("template", templates.iter().zip(RUNS));
}

/// The chapters through which one program grows.
const STATES: [&str; 5] = ["first_program.md", "tasks.md", "time.md", "sockets.md", "shutdown.md"];

/// Two clients of the program that grows, one after the other.
const CLIENTS: &str = r#"fn main() {
    mini::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _server = mini::spawn(serve(listener));
        // SILENT
        for before in ["none", "dark green"] {
            let client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"get colour\nset colour dark green\nget colour\nhello\n").await.unwrap();
            let expected = format!("{before}\nok\ndark green\nwhat?\n");
            let mut answers = vec![0; expected.len()];
            client.read_exact(&mut answers).await.unwrap();
            assert_eq!(String::from_utf8(answers).unwrap(), expected);
        }
    });
}"#;

/// A client that is connected first, and does not keep the server from serving others.
const SILENT: &str = "let _silent = TcpStream::connect(address).await.unwrap();";

#[test]
fn every_state_of_the_program_that_grows_serves_its_clients() {
    let state = |name: &&str| {
        let mut found = blocks(&chapter(name)).into_iter().filter(|block| block.contains("type Store"));
        renamed(found.next().unwrap_or_else(|| panic!("{name} has no state of the program")))
    };
    let states: Vec<String> = STATES.iter().map(state).collect();
    let beside = CLIENTS.replace("// SILENT", SILENT);
    run("state", states.iter().zip([CLIENTS, &beside, &beside, &beside, &beside]));
}

/// A client is connected, then there are no files left, and another client comes.
const SHORTAGE: &str = r#"fn main() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    async fn is_served(client: &TcpStream) {
        client.write_all(b"hello").await.unwrap();
        client.read_exact(&mut [0; 5]).await.unwrap();
    }

    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
    mini::block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Group::new();
        let server = mini::spawn(serve(listener, connections.clone()));
        let first = TcpStream::connect(address).await.unwrap();
        is_served(&first).await;
        let second = mini::net::TcpSocket::new_v4().unwrap();
        let mut files = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            files.push(file);
        }
        let second = second.connect(address).await.unwrap();
        for _ in 0..10 {
            is_served(&first).await;
        }
        files.pop();
        is_served(&second).await;
        is_served(&first).await;
        assert!(connections.shutdown(mini::task::Reason::Requested).await.is_clean());
        server.await.unwrap().unwrap();
    });
}"#;

#[test]
fn a_server_made_of_the_template_goes_on_when_there_are_no_files_left() {
    let templates = templates();
    let server = templates
        .iter()
        .find(|template| template.contains("async fn serve(listener: TcpListener"))
        .expect("the server");
    run("shortage", [(server, SHORTAGE)].into_iter());
}

#[test]
fn every_line_for_those_who_come_from_tokio_compiles() {
    let lines = lines(&chapter("porting.md"));
    assert!(lines.len() > 30, "the table was not found: {lines:?}");
    let path = env::temp_dir().join(format!("coming-from-tokio-{}.rs", std::process::id()));
    fs::write(&path, program(&lines)).unwrap();
    trybuild::TestCases::new().pass(&path);
    // The program is compiled when the test cases are dropped, at the end of the statement above.
    fs::remove_file(path).unwrap();
}
