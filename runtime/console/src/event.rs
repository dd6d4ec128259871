//! The event that the page receives each second, as one line of JSON (RFC 8259): a dump, the activity of the workers,
//! warnings.

use std::fmt::{self, Display, Write};
use std::time::Instant;

use mini::runtime::{Handle, Histogram, Metrics, Warning};

/// Of more tasks than these only groups are told: each task takes about 300 bytes.
const TASKS: usize = 10_000;

/// Nor of tasks that take more than so many bytes, as they have long names.
const BYTES: usize = 8 << 20;

/// The groups of so many tasks that are told, the largest.
const GROUPS: usize = 1_000;

/// The state of the runtime now, the time that it took to collect it, and the template for links to the source.
pub(crate) fn event(watched: &Handle, source_links: Option<&str>) -> String {
    let begin = Instant::now();
    let dump = watched.dump();
    let each = if dump.tasks().len() <= TASKS { Some(dump.to_json()) } else { None };
    let dump = each.filter(|each| each.len() <= BYTES).unwrap_or_else(|| dump.groups_to_json(GROUPS));
    let mut text = format!("{{\"dump\":{dump},\"metrics\":");
    metrics(&mut text, &watched.metrics());
    text.push_str(",\"warnings\":");
    list(&mut text, &watched.warnings(), warning);
    if let Some(template) = source_links {
        put(&mut text, format_args!(",\"source_links\":{}", Quoted(template)));
    }
    put(&mut text, format_args!(",\"took_seconds\":{}}}", begin.elapsed().as_secs_f64()));
    text
}

fn metrics(text: &mut String, metrics: &Metrics) {
    let (alive, injected) = (metrics.num_alive_tasks(), metrics.global_queue_depth());
    put(text, format_args!("{{\"alive_tasks\":{alive},\"injected\":{injected},\"workers\":"));
    list(text, 0..metrics.num_workers(), |text, worker| {
        let (polls, parks) = (metrics.worker_poll_count(worker), metrics.worker_park_count(worker));
        let (steals, queued) = (metrics.worker_steal_count(worker), metrics.worker_local_queue_depth(worker));
        let busy = metrics.worker_total_busy_duration(worker).as_secs_f64();
        put(text, format_args!("{{\"polls\":{polls},\"parks\":{parks},\"steals\":{steals},"));
        put(text, format_args!("\"queued\":{queued},\"busy_seconds\":{busy}}}"));
    });
    for (name, counted) in [("poll_time", metrics.poll_time()), ("queue_delay", metrics.queue_delay())] {
        if let Some(counted) = counted {
            put(text, format_args!(",\"{name}\":"));
            histogram(text, &counted);
        }
    }
    text.push('}');
}

fn histogram(text: &mut String, counted: &Histogram) {
    put(text, format_args!("{{\"count\":{},\"quantiles\":", counted.count()));
    list(text, [0.5, 0.9, 0.99, 0.999, 1.0], |text, part| {
        put(text, format_args!("[{part},{}]", counted.quantile(part).as_secs_f64()));
    });
    text.push('}');
}

fn warning(text: &mut String, warning: &Warning) {
    let (kind, whole, at) = (Quoted(warning.kind()), Quoted(warning), warning.at().as_secs_f64());
    put(text, format_args!("{{\"kind\":{kind},\"text\":{whole},\"at_seconds\":{at}}}"));
}

fn list<T>(text: &mut String, items: impl IntoIterator<Item = T>, mut item: impl FnMut(&mut String, T)) {
    text.push('[');
    for (at, one) in items.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        item(text, one);
    }
    text.push(']');
}

fn put(text: &mut String, value: impl Display) {
    let _ = write!(text, "{value}"); // a `String` takes all
}

/// A text in quotes.
struct Quoted<T>(T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.to_string().chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                '\0'..' ' => write!(f, "\\u{:04x}", char as u32)?,
                _ => f.write_char(char)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mini::runtime::Runtime;
    use serde_json::Value;

    #[test]
    fn it_is_one_line_of_json() {
        let runtime = Runtime::new().unwrap();
        let text = event(runtime.handle(), None);
        assert!(!text.contains('\n'));
        let event: Value = serde_json::from_str(&text).unwrap();
        let workers = runtime.metrics().num_workers();
        assert_eq!(event["dump"]["workers"].as_array().unwrap().len(), workers);
        assert_eq!(event["metrics"]["workers"].as_array().unwrap().len(), workers);
        assert_eq!(event["dump"]["tasks"].as_array().unwrap().len(), 0);
        assert_eq!(event["dump"]["has_ended"], false);
        let handle = runtime.handle().clone();
        drop(runtime);
        let event: Value = serde_json::from_str(&self::event(&handle, None)).unwrap();
        assert_eq!(event["dump"]["has_ended"], true);
    }

    #[test]
    fn histograms_are_in_it_if_the_runtime_has_them() {
        let runtime = mini::runtime::Builder::new_current_thread().histograms(true).build().unwrap();
        runtime.block_on(async { mini::spawn(async {}).await.unwrap() });
        let event: Value = serde_json::from_str(&event(runtime.handle(), None)).unwrap();
        let polls = &event["metrics"]["poll_time"];
        assert!(polls["count"].as_u64().unwrap() >= 1, "{polls}");
        let quantiles: Vec<f64> =
            polls["quantiles"].as_array().unwrap().iter().map(|pair| pair[1].as_f64().unwrap()).collect();
        assert!(quantiles.is_sorted() && quantiles.len() == 5, "{polls}");
        assert!(event["metrics"]["queue_delay"]["quantiles"][4][0] == 1.0);
        let without = self::event(Runtime::new().unwrap().handle(), None);
        assert!(!without.contains("poll_time"));
    }

    #[test]
    fn of_very_many_tasks_there_are_groups() {
        mini::block_on(async {
            for _ in 0..=TASKS {
                mini::spawn(std::future::pending::<()>());
            }
            while Handle::current().dump().tasks().iter().any(|task| !task.is_lost()) {
                mini::task::yield_now().await;
            }
            let event: Value = serde_json::from_str(&event(&Handle::current(), None)).unwrap();
            assert!(event["dump"]["tasks"].is_null());
            assert_eq!(event["dump"]["task_count"], TASKS + 1);
            assert_eq!(event["dump"]["groups"].as_array().unwrap().len(), 1);
            assert_eq!(event["dump"]["groups"][0]["state"], "lost");
        });
    }

    #[test]
    fn of_tasks_with_very_long_names_there_are_groups() {
        let runtime = Runtime::new().unwrap();
        let name = "x".repeat(BYTES / 2);
        let spawn = || mini::task::Builder::new().name(&name).spawn_on(std::future::pending::<()>(), runtime.handle());
        let first = spawn();
        assert!(event(runtime.handle(), None).contains(r#""tasks":["#));
        let second = spawn();
        assert!(event(runtime.handle(), None).contains(r#""groups":["#));
        drop((first, second));
    }

    #[test]
    fn quotes_and_controls_are_escaped() {
        let text = Quoted("a\"b\\c\n\u{1}é\u{2028}").to_string();
        assert_eq!(text, "\"a\\\"b\\\\c\\u000a\\u0001é\u{2028}\"");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "a\"b\\c\n\u{1}é\u{2028}");
    }
}
