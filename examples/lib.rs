//! What the example programs share: arguments, a latency histogram, a look at the process's own memory.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Buckets per power of two. A bucket is at most 3 % as wide as what is in it is long.
const FINE: usize = 32;

/// A histogram of durations: a fixed amount of memory, however many are recorded.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
    longest: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: vec![0; 64 * FINE], total: 0, longest: 0 }
    }
}

impl Latencies {
    /// Counts one duration.
    pub fn record(&mut self, latency: Duration) {
        let ns = latency.as_nanos() as u64;
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.longest = self.longest.max(ns);
    }

    /// Adds what another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// How many durations were recorded.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The duration that `share` (`0.0..=1.0`) of the recorded ones do not exceed; zero if there are none.
    ///
    /// The longest one is exact. The others are interpolated, as if those of a bucket were spread evenly over it.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut before = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            if rank < self.total && rank <= before + count {
                let (from, to) = (lower_end(index), lower_end(index + 1));
                let ns = from + (to - from) * ((rank - before) as f64 - 0.5) / count as f64;
                return Duration::from_nanos((ns as u64).min(self.longest));
            }
            before += count;
        }
        Duration::from_nanos(self.longest)
    }
}

fn bucket(ns: u64) -> usize {
    let power = ns.max(FINE as u64).ilog2() as usize;
    let shift = power - FINE.ilog2() as usize;
    if ns < FINE as u64 { ns as usize } else { shift * FINE + (ns >> shift) as usize }
}

/// The shortest duration of a bucket, in nanoseconds.
fn lower_end(bucket: usize) -> f64 {
    let shift = (bucket / FINE).saturating_sub(1);
    (bucket - shift * FINE) as f64 * (shift as f64).exp2()
}

/// The memory this process has resident, in bytes, where the system tells (`/proc/self/statm`, proc(5)).
pub fn resident_memory() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Runs a program with its arguments. An error goes to stderr, after the program's name.
pub fn run_with_args(name: &str, program: impl FnOnce(Vec<String>) -> io::Result<()>) -> ExitCode {
    ended(name, program(arguments()))
}

/// The same for a program whose `main` is async.
pub async fn run_async(name: &str, program: impl AsyncFnOnce(Vec<String>) -> io::Result<()>) -> ExitCode {
    ended(name, program(arguments()).await)
}

fn arguments() -> Vec<String> {
    std::env::args().skip(1).collect()
}

fn ended(name: &str, result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The error for arguments that make no sense: what is wrong with them, and what they may be.
pub fn bad_usage(problem: impl std::fmt::Display, usage: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{problem}\n{usage}"))
}

/// Refuses arguments that no option has taken.
///
/// # Errors
///
/// [`bad_usage`], which names them.
pub fn refuse_more(args: &[String], usage: &str) -> io::Result<()> {
    match args {
        [] => Ok(()),
        more => Err(bad_usage(format_args!("what is {}?", more.join(" ")), usage)),
    }
}

/// Takes `--name TEXT` out of the arguments; `None` if it is not there.
///
/// # Errors
///
/// A sentence that says which option lacks its value.
pub fn text_option(args: &mut Vec<String>, name: &str) -> Result<Option<String>, String> {
    let Some(at) = args.iter().position(|arg| arg == name) else { return Ok(None) };
    if at + 1 == args.len() {
        return Err(format!("{name} needs a value"));
    }
    args.remove(at);
    Ok(Some(args.remove(at)))
}

/// Takes `--name N` out of the arguments; the default if it is not there.
///
/// # Errors
///
/// A sentence that says which option is wrong.
pub fn number_option(args: &mut Vec<String>, name: &str, default: u64) -> Result<u64, String> {
    let Some(value) = text_option(args, name)? else { return Ok(default) };
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{name} needs a number from 1 on, not {value:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^28 ns begin a bucket that is 8 ms wide.
    #[test]
    fn quantiles_lie_inside_their_buckets() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.5), Duration::ZERO);
        for us in 1..=1000 {
            latencies.record(Duration::from_micros(us));
        }
        for (share, us) in [(0.0, 1.0), (0.01, 10.0), (0.5, 500.0), (0.99, 990.0), (0.999, 999.0)] {
            let found = latencies.quantile(share).as_nanos() as f64 / 1000.0;
            assert!((found / us - 1.0).abs() < 0.03, "{share}: {found} µs");
        }
        assert_eq!(latencies.quantile(1.0), Duration::from_micros(1000));

        let mut wide = Latencies::default();
        for us in 0..8000 {
            wide.record(Duration::from_nanos(1 << 28) + Duration::from_micros(us));
        }
        for (share, ms) in [(0.25, 2.0), (0.5, 4.0), (0.75, 6.0)] {
            let found = wide.quantile(share).as_secs_f64() * 1000.0 - 268.435;
            assert!((found - ms).abs() < 0.3, "{share}: {found} ms into the bucket");
        }
        latencies.merge(&wide);
        assert_eq!(latencies.quantile(1.0), Duration::from_nanos(1 << 28) + Duration::from_micros(7999));
        assert_eq!(latencies.count(), 9000);
    }

    #[test]
    fn options_are_taken_out_or_refused() {
        let mut args: Vec<String> = ["a", "--n", "7", "b"].map(String::from).to_vec();
        assert_eq!(number_option(&mut args, "--n", 1), Ok(7));
        assert_eq!(args, ["a", "b"]);
        assert_eq!(number_option(&mut args, "--n", 1), Ok(1));
        assert_eq!(text_option(&mut args, "--t"), Ok(None));
        let mut args: Vec<String> = ["--t", "x", "--t"].map(String::from).to_vec();
        assert_eq!(text_option(&mut args, "--t"), Ok(Some("x".to_owned())));
        assert!(text_option(&mut args, "--t").unwrap_err().contains("--t"));
        let mut args: Vec<String> = ["--n", "x"].map(String::from).to_vec();
        assert!(number_option(&mut args, "--n", 1).unwrap_err().contains("--n"));
    }
}
