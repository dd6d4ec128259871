//! A runtime without any layer, for tests and models.

use std::any::Any;
use std::sync::Arc;

use super::config::Config;
use super::extension::Extension;
use super::shared::Shared;
use crate::task::{JoinError, Source};

struct NoLayers;

impl Extension for NoLayers {
    fn main_panicked(&self, _: &Shared) {}

    fn unseen_panic(&self, _: &JoinError) {}

    fn text_of(&self, _: &str, _: &dyn Any) -> Option<String> {
        None
    }

    fn unseen_error(&self, _: Source, _: String) {}

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The caller ends it.
pub(super) fn begin(config: Config) -> Arc<Shared> {
    Shared::new(config, Box::new(NoLayers)).unwrap()
}
