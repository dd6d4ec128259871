//! The links of the project's documents, and the two forms of the guide's.
//!
//! A chapter of the guide is read on the forge and in rustdoc. Its links are references, defined at its end as the
//! forge needs them: other files, and pages of the published reference. In rustdoc `links.md` comes before each
//! chapter. It defines the same labels as rustdoc needs them, and of two definitions Markdown takes the first. So
//! rustdoc checks that each item exists, and is what its page's name says. `feature_links.md` has those of the items
//! that exist only with a feature.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

use pulldown_cmark::{BrokenLink, CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

/// The pages of the library `mini`, as the workflow `pages` publishes them.
const REFERENCE: &str = "https://mini-rt.github.io/mini/mini/";

/// The beginnings of items that exist only with a feature that is off by default.
const OF_FEATURES: [&str; 6] = [
    "crate::io::AsyncBufReadExt",
    "crate::io::BufReader",
    "crate::io::Lines",
    "crate::io::Split",
    "crate::net::incoming",
    "crate::sim",
];

/// A file of the repository, for readers who are elsewhere.
const FORGE: &str = "https://github.com/mini-rt/mini/blob/main/";

/// What a document links to, and what can be linked to in it.
#[derive(Default)]
struct Document {
    anchors: HashSet<String>,
    links: Vec<(LinkType, String)>,
    definitions: BTreeMap<String, String>,
    /// References without a definition, which the forge shows as they are written.
    undefined: Vec<String>,
    /// Lines of Rust that rustdoc hides, and the forge does not.
    hidden: Vec<String>,
}

impl Document {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut document = Self::default();
        let mut undefined = Vec::new();
        let note = |link: BrokenLink<'_>| {
            undefined.push(link.reference.to_string());
            None
        };
        let mut events = Parser::new_with_broken_link_callback(&text, Options::ENABLE_TABLES, Some(note));
        let (mut heading, mut is_rust) = (None, false);
        for event in &mut events {
            match event {
                Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) => {
                    document.links.push((link_type, dest_url.to_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => document.add_anchor(&heading.take().unwrap()),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    is_rust = info.is_empty() || info.starts_with("rust");
                }
                Event::Text(text) if is_rust => {
                    let hidden = text.lines().filter(|line| *line == "#" || line.trim_start().starts_with("# "));
                    document.hidden.extend(hidden.map(str::to_owned));
                }
                Event::End(TagEnd::CodeBlock) => is_rust = false,
                Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|title| title.push_str(&text)),
                _ => {}
            }
        }
        let definitions = events.reference_definitions().iter();
        document.definitions = definitions.map(|(label, at)| (label.to_owned(), at.dest.to_string())).collect();
        drop(events);
        document.undefined = undefined;
        document
    }

    /// Adds the anchor that the forge and rustdoc make of a heading: the same for ASCII.
    fn add_anchor(&mut self, heading: &str) {
        let is_kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        let anchor: String = heading.to_lowercase().chars().filter(is_kept).collect();
        let anchor = anchor.replace(' ', "-");
        let mut numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let anchor = if self.anchors.contains(&anchor) {
            numbered.find(|anchor| !self.anchors.contains(anchor)).unwrap()
        } else {
            anchor
        };
        self.anchors.insert(anchor);
    }
}

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All documents of a folder, by their paths from the root.
fn documents(folder: &Path) -> HashMap<PathBuf, Document> {
    let (mut folders, mut documents) = (vec![folder.to_owned()], HashMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !matches!(name, "target" | ".git") {
                folders.push(path);
            } else if name.ends_with(".md") {
                documents.insert(path.strip_prefix(root()).unwrap().to_owned(), Document::read(&path));
            }
        }
    }
    documents
}

/// A path without `..`, or `None` if it leaves the repository.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir if normal.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(normal)
}

/// Whether a link of a document leads to a file or a heading of the repository, or out of it.
fn leads_somewhere(documents: &HashMap<PathBuf, Document>, from: &Path, link: &str) -> bool {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = match path.strip_prefix(FORGE) {
        Some(path) => normal(Path::new(path)),
        None if path.contains("://") => return true,
        None if path.is_empty() => Some(from.to_owned()),
        None => normal(&from.parent().unwrap().join(path)),
    };
    path.is_some_and(|path| {
        let document = documents.get(&path);
        root().join(&path).exists() && (anchor.is_empty() || document.is_some_and(|it| it.anchors.contains(anchor)))
    })
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let documents = documents(&root());
    let mut dead = String::new();
    let mut links = 0;
    for (path, document) in &documents {
        for (_, link) in &document.links {
            links += 1;
            if !leads_somewhere(&documents, path, link) {
                writeln!(dead, "{}: {link}", path.display()).unwrap();
            }
        }
        for label in &document.undefined {
            writeln!(dead, "{}: [{label}] has no definition", path.display()).unwrap();
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{dead}");
    assert!(links > 300, "only {links} links in {} documents", documents.len());
}

/// The item of a page of the reference, as rustdoc finds it: its kind, and its path.
fn item(page: &str) -> String {
    let (page, anchor) = page.split_once('#').unwrap_or((page, ""));
    let mut path: Vec<_> = ["crate"].into_iter().chain(page.split('/')).collect();
    let file = path.pop().unwrap();
    let kind = match *file.split('.').collect::<Vec<_>>() {
        ["index", "html"] => "mod",
        [kind, name, "html"] => {
            path.push(name);
            if kind == "attr" { "macro" } else { kind }
        }
        _ => panic!("not a page of rustdoc's: {page}"),
    };
    match anchor.split_once('.') {
        Some(("method" | "tymethod", name)) => format!("fn@{}::{name}", path.join("::")),
        None if anchor.is_empty() => format!("{kind}@{}", path.join("::")),
        _ => format!("{kind}@{}#{anchor}", path.join("::")),
    }
}

/// A picture as a link that contains it.
fn data(picture: &Path) -> String {
    let mut link = "data:image/svg+xml,".to_owned();
    for letter in fs::read_to_string(picture).unwrap().trim_end().chars() {
        match letter {
            ' '..='~' if !" \"#%<>()\\".contains(letter) => link.push(letter),
            _ => letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| write!(link, "%{byte:02X}").unwrap()),
        }
    }
    link
}

/// What a definition of a chapter is in rustdoc, or `None` if it is the same there.
fn in_rustdoc(guide: &Path, link: &str) -> Option<String> {
    if let Some(page) = link.strip_prefix(REFERENCE) {
        return Some(item(page));
    }
    if link.contains("://") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, String::new()), |(file, at)| (file, format!("#{at}")));
    Some(match (file, file.strip_suffix(".md").filter(|name| !name.contains('/'))) {
        ("front.md", _) => format!("mod@crate::guide{anchor}"),
        (_, Some(chapter)) => format!("mod@crate::guide::{chapter}{anchor}"),
        _ if file.ends_with(".svg") => data(&guide.join(file)),
        _ => format!("{FORGE}{}{anchor}", normal(&Path::new("runtime/guide").join(file)).unwrap().display()),
    })
}

/// Whether a definition for rustdoc names an item that exists only with a feature.
fn needs_feature(link: &str) -> bool {
    let item = link.split_once('@').map_or(link, |(_kind, item)| item);
    let mut rests = OF_FEATURES.iter().filter_map(|begin| item.strip_prefix(begin));
    rests.any(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Writes definitions, if the file has others; returns whether it had.
fn is_written(path: &Path, labels: &BTreeMap<String, (String, String)>) -> bool {
    let text: String = labels.values().map(|(label, link)| format!("[{label}]: {link}\n")).collect();
    let is_old = fs::read_to_string(path).ok().as_ref() != Some(&text);
    if is_old {
        fs::write(path, text).unwrap();
    }
    is_old
}

#[test]
fn the_guide_is_the_same_on_the_forge_and_in_rustdoc() {
    let guide = root().join("runtime/guide");
    let (links, feature_links) = (guide.join("links.md"), guide.join("feature_links.md"));
    let modules = fs::read_to_string(root().join("runtime/src/guide.rs")).unwrap();
    let (mut labels, mut feature_labels) = (BTreeMap::new(), BTreeMap::new());
    for (path, chapter) in documents(&guide) {
        if [&links, &feature_links].contains(&&root().join(&path)) {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let includes = format!("feature_links.md\")\n)]\n#[doc = include_str!(\"../guide/{name}\")]");
        let path = path.display();
        assert!(chapter.hidden.is_empty(), "{path}: the forge shows these lines: {:#?}", chapter.hidden);
        for (kind, link) in chapter.links {
            let is_same = link.starts_with('#') || link.contains("://") && !link.starts_with(REFERENCE);
            assert!(is_same || kind != LinkType::Inline, "{path}: a reference is needed, not ({link})");
        }
        for (label, link) in chapter.definitions {
            let Some(link) = in_rustdoc(&guide, &link) else { continue };
            let is_of_feature = needs_feature(&link);
            let is_included = modules.contains(&includes);
            assert!(!is_of_feature || is_included, "{path}: `guide.rs` has no feature_links.md before it");
            let labels = if is_of_feature { &mut feature_labels } else { &mut labels };
            let before = labels.insert(label.to_lowercase(), (label.clone(), link.clone()));
            let is_same = before.is_none_or(|(_, before)| before == link);
            assert!(is_same, "{path}: [{label}] is something else in another chapter");
        }
    }
    let written = [is_written(&links, &labels), is_written(&feature_links, &feature_labels)];
    assert_eq!(written, [false; 2], "links.md or feature_links.md was out of date, and has been written anew");
}
