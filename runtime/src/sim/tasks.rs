//! The names of a simulation's tasks in reports: the name or the line of the spawn, and the host.

use mini_kernel::task::Source;

/// The tasks of a simulation by their numbers, which are counted in the order of their first steps.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) all: Vec<Known>,
    /// The names of the hosts.
    pub(super) hosts: Vec<String>,
}

/// The known data of a task.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: u64,
    pub(super) host: u32,
    /// None of the main task, which is no task of the runtime.
    pub(super) source: Option<Source>,
}

impl Tasks {
    /// With the id, which the dump of this run has too.
    pub(super) fn shown(&self, number: u64) -> String {
        let Some(Known { id, source: Some(Source { location, name, .. }), .. }) = self.task(number) else {
            return "main".to_owned();
        };
        let host = self.host(number).map_or(String::new(), |host| format!("{host}: "));
        match name {
            Some(name) => format!("{host}task {id} {name:?}"),
            None => format!("{host}task {id} of {}:{}", location.file(), location.line()),
        }
    }

    /// As it is called in every run.
    pub(super) fn lasting(&self, number: u64) -> String {
        let Some(Known { source: Some(Source { location, name, .. }), .. }) = self.task(number) else {
            return "main".to_owned();
        };
        let name = name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
        let host = self.host(number).map_or(String::new(), |host| format!(" on {host}"));
        format!("a task{name} of {}:{}{host}", location.file(), location.line())
    }

    fn task(&self, number: u64) -> Option<&Known> {
        self.all.get(number as usize)
    }

    /// The host of the task, if the test has more than its own.
    fn host(&self, number: u64) -> Option<&str> {
        let host = self.hosts.get(self.task(number)?.host as usize)?;
        (self.hosts.len() > 1).then_some(host)
    }
}
