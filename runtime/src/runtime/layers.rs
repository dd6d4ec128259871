//! `Layers`: what is built on the scheduler and belongs to one runtime. The scheduler knows it as its
//! [`Extension`].

use std::any::Any;
use std::io;
use std::sync::Arc;

use mini_context::contain;
use mini_kernel::say::Throttle;
use mini_kernel::scheduler::config::Config;
use mini_kernel::scheduler::extension::Extension;
use mini_kernel::scheduler::shared::Shared;

use super::settings::Settings;
use super::turns::Turns;
use super::{Id, Runtime};
use crate::insight;
use crate::task::{JoinError, TaskError, group};
use crate::task::{Source, describe};

pub(crate) struct Layers {
    pub(crate) id: Id,
    pub(crate) settings: Settings,
    /// What whoever looks at the runtime keeps.
    #[cfg(feature = "insight")]
    pub(crate) insight: insight::Kept,
    /// The errors that tasks of groups have left.
    pub(crate) group_errors: group::Errors,
    /// The lines about errors of tasks that nobody has read.
    unseen_errors: Throttle,
}

/// Begins a runtime.
pub(crate) fn begin(config: Config, settings: Settings) -> io::Result<Runtime> {
    let runtime = Runtime::new_from(make(config, settings)?);
    insight::begin(runtime.shared())?;
    Ok(runtime)
}

/// Makes one that nobody looks at.
pub(crate) fn make(mut config: Config, settings: Settings) -> io::Result<Arc<Shared>> {
    config.observers.extend(insight::recorder(&settings));
    config.observers.extend(settings.on_task.observer());
    config.observers.extend(settings.on_turn.clone().map(Turns::observer));
    let layers = Layers {
        id: Id::next(),
        settings,
        #[cfg(feature = "insight")]
        insight: insight::Kept::default(),
        group_errors: group::Errors::default(),
        unseen_errors: Throttle::new(),
    };
    Shared::new(config, Box::new(layers))
}

impl Layers {
    /// Those of a runtime.
    pub(crate) fn of(shared: &Shared) -> &Self {
        shared.extension.as_any().downcast_ref().expect("every runtime begins here")
    }
}

impl Extension for Layers {
    fn main_panicked(&self, shared: &Shared) {
        insight::dump_on_panic(shared);
    }

    fn unseen_panic(&self, error: &JoinError) {
        let known = self.group_errors.take(error.id());
        match (&self.settings.on_task_panic, known) {
            (Some(hook), _) => drop(contain(|| hook(error))),
            (None, Some(known)) => say!("{error}, in the group {}", known.group), // it has a report
            (None, None) => say!("{error}, and no task awaits it"),
        }
    }

    #[cold]
    fn text_of(&self, type_name: &str, output: &dyn Any) -> Option<String> {
        describe(type_name, output)
    }

    #[cold]
    fn unseen_error(&self, source: Source, text: String) {
        let error = TaskError::new(source, text);
        let error = match self.group_errors.take(error.id()) {
            Some(known) => error.known_to_group(known),
            None => error,
        };
        match &self.settings.on_task_error {
            Some(hook) => drop(contain(|| hook(&error))),
            None if error.is_of_group() => self.unseen_errors.line(format_args!("{error}")), // it has a report
            None => self.unseen_errors.line(format_args!("{error}, and no task awaits it")),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
