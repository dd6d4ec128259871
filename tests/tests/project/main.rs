//! The project: the links of its documents, its lists of models, and programs that cargo has to compile.

mod links;
mod models;
mod readme;
mod ui;
