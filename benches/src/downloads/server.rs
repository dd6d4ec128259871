//! The servers of the downloads: a process on a CPU of its own, ended when the [`Server`] is dropped.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::cpus;

/// A program that serves the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The example of this workspace.
    Http,
    /// nginx as it is.
    Nginx,
    /// nginx with `sendfile_max_chunk 128k`.
    NginxInPieces,
}

impl Program {
    pub(super) const ALL: [Self; 3] = [Self::Http, Self::Nginx, Self::NginxInPieces];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "`http`",
            Self::Nginx => "nginx",
            Self::NginxInPieces => "nginx, chunks of 128k",
        }
    }
}

/// A server at work.
pub(super) struct Server {
    process: Child,
    pub(super) port: u16,
}

impl Server {
    /// Starts one that serves `root` on `cpu`; returns when it accepts.
    pub(super) fn start(program: Program, root: &Path, cpu: usize) -> Result<Self, String> {
        let port = free_port().map_err(|error| format!("no port: {error}"))?;
        let mut command = match program {
            Program::Http => http(root, port)?,
            Program::Nginx => nginx(root, port, "")?,
            Program::NginxInPieces => nginx(root, port, "sendfile_max_chunk 128k;")?,
        };
        command.stdin(Stdio::null()).stdout(Stdio::null());
        // A process inherits the affinity of the thread that starts it.
        let spawn = || {
            cpus::bind(&[cpu]).map_err(|error| error.to_string())?;
            command.spawn().map_err(|error| format!("{:?} cannot be run: {error}", command.get_program()))
        };
        let process = thread::scope(|scope| scope.spawn(spawn).join().expect("it only starts a process"))?;
        let server = Self { process, port };
        for _ in 0..100 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(50));
        }
        Err("does not accept".to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn http(root: &Path, port: u16) -> Result<Command, String> {
    let mut command = Command::new(build_example()?);
    command.arg("--root").arg(root).args(["--port", &port.to_string()]);
    Ok(command)
}

/// Builds the example where this program was built; returns its path.
fn build_example() -> Result<PathBuf, String> {
    let exe = env::current_exe().map_err(|error| error.to_string())?;
    let release = exe.parent().and_then(Path::parent).ok_or("this program lies in no target directory")?;
    let target = release.parent().ok_or("this program lies in no target directory")?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--quiet",
            "--profile",
            "bench",
            "-p",
            "mini-more-examples",
            "--example",
            "http",
            "--target-dir",
        ])
        .arg(target);
    let status = command.current_dir(env!("CARGO_MANIFEST_DIR")).status();
    match status.map_err(|error| format!("cargo cannot be run: {error}"))?.success() {
        true => Ok(target.join("release/examples/http")),
        false => Err("the example cannot be built".to_owned()),
    }
}

/// One process, that of the worker.
fn nginx(root: &Path, port: u16, option: &str) -> Result<Command, String> {
    let (root, directory) = (root.display(), root.join(format!("nginx-{port}")));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let here = directory.display();
    let config = format!(
        "daemon off; master_process off; worker_processes 1; pid {here}/pid; error_log {here}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; sendfile on; {option} keepalive_requests 1000000000;\n\
         client_body_temp_path {here}/body; proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/fastcgi;\n\
         uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;\n\
         server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n"
    );
    let path = directory.join("nginx.conf");
    fs::write(&path, config).map_err(|error| error.to_string())?;
    let mut command = Command::new("nginx");
    command.arg("-e").arg(directory.join("error.log")).arg("-c").arg(path);
    Ok(command)
}
