//! A server for the protocol of Redis, RESP2, in five styles: a busy loop and a loop around epoll or kqueue, without
//! mini, an actor that owns the data, on one thread and on several workers, and tasks on one thread that share it.
//!
//! ```text
//! redis [--style STYLE]                              try a style, or all, with a few commands, print them, end
//! redis --port N [--bind ADDRESS] [--style STYLE]    serve until Ctrl-C, in style local if not told otherwise
//! ```
//!
//! A style is busy, raw, actor, workers or local. `MINI_WORKER_THREADS` sets the number of workers.
//!
//! `examples/compare.sh` measures it beside Redis.

use std::io;
use std::process::ExitCode;

use mini::net::TcpListener;
use mini::runtime::{Builder, Runtime};
use mini_examples::{bad_usage, run_with_args};

use server::Style;

#[path = "redis/check.rs"]
mod check;
#[path = "redis/server.rs"]
mod server;

const USAGE: &str = "usage: redis [--port N [--bind ADDRESS]] [--style busy|raw|actor|workers|local]";

/// The busy one last, as it takes a processor for as long as the program runs.
const STYLES: [Style; 5] = [Style::Raw, Style::Actor, Style::Workers, Style::Local, Style::Busy];

fn main() -> ExitCode {
    run_with_args("redis", |args| run(args.into_iter()))
}

fn run(mut args: impl Iterator<Item = String>) -> io::Result<()> {
    let bad = |problem: String| bad_usage(problem, USAGE);
    let (mut port, mut bind, mut style) = (None, "127.0.0.1".to_owned(), None);
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| bad(format!("{option} needs a value")));
        match &*option {
            "--port" => {
                let value = value()?;
                port = Some(value.parse().map_err(|_| bad(format!("--port is 0 to 65535, not {value:?}")))?);
            }
            "--bind" => bind = value()?,
            "--style" => style = Some(value()?.parse().map_err(bad)?),
            _ => return Err(bad(format!("what is {option:?}?"))),
        }
    }
    if let Some(port) = port {
        let style = style.unwrap_or(Style::Local);
        return runtime(style)?.block_on(serve(&bind, port, style));
    }
    let styles = style.map_or(STYLES.to_vec(), |style| vec![style]);
    styles.into_iter().try_for_each(|style| runtime(style)?.block_on(check::run(style)))
}

fn runtime(style: Style) -> io::Result<Runtime> {
    match style {
        Style::Workers => Builder::new_multi_thread().build(),
        _ => Builder::new_current_thread().build(),
    }
}

async fn serve(bind: &str, port: u16, style: Style) -> io::Result<()> {
    let listener = TcpListener::bind((bind, port)).await?;
    println!("redis: serving on {}, style {style}", listener.local_addr()?);
    server::start(listener, style)?;
    mini::signal::termination().await.map(drop)
}
