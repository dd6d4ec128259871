//! The page: one file, which needs nothing else, from parts that can be read.
//!
//! `head.html` and `body.html` have the markup, `style.css` the style. The script is in five parts: `dom.js` makes
//! nodes and texts, `known.js` keeps the content of the events, `view.js` and `graph.js` show it, `live.js` shows one
//! task and receives events.
//!
//! Names and texts of the program become text nodes and attributes of the page, and never HTML. Nodes are kept from
//! event to event if possible, as the reader may have selected, opened or focused them.
//!
//! Rejected: a framework (more to read than the page, and a build for it). Modules (more requests). The history of a
//! task kept in the program: the page has room for it.

/// As it is sent.
pub(crate) const PAGE: &str = concat!(
    include_str!("page/head.html"),
    "<style>\n",
    include_str!("page/style.css"),
    "</style>\n",
    include_str!("page/body.html"),
    "<script>\n",
    include_str!("page/dom.js"),
    include_str!("page/known.js"),
    include_str!("page/view.js"),
    include_str!("page/graph.js"),
    include_str!("page/live.js"),
    "</script>\n</body>\n</html>\n",
);
