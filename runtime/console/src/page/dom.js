"use strict";

// Nodes and texts. All texts come from the program: they become text nodes and attributes, never HTML.

const SPAN = 60, STUCK = .5; // in seconds: what the timelines show; a poll that is too long
const GROUPS = 300, MEMBERS = 100, LISTED = 5, NODES = 40; // most of those that are shown
const HISTORY = 50; // entries that are kept of a task

const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter(child => child !== undefined && child !== null && child !== ""));
  return node;
}
const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

const count = number => number.toLocaleString("en-US");
const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
function time(seconds) {
  if (seconds > 0 && seconds < 1e-3) return `${Number((seconds * 1e6).toPrecision(2))} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1e3)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
const rate = number => number >= 100 ? count(Math.round(number)) : number === 0 ? "0" : number.toFixed(1);

/// A line of code: the folders softly, the last three of them at most. A link, if the console has a template for links
/// and the path is relative.
function path(location) {
  if (!location) return "";
  const whole = location.replace(/[^/]+\/\.\.\//g, ""), parts = whole.split("/"), file = parts.pop();
  const dirs = parts.length > 3 ? "…/" + parts.slice(-3).join("/") : parts.join("/");
  const shown = [h("span", { class: "dir" }, dirs && dirs + "/"), file];
  const template = last?.source_links, [, path, line, column] = whole.match(/^([^/].*?):(\d+)(?::(\d+))?$/) ?? [];
  if (!template || !path) return h("span", { class: "path", title: location }, shown);
  const values = { file: encodeURI(path), line, column: column ?? 1 };
  const href = template.replace(/\{(file|line|column)\}/g, (_, name) => values[name]);
  const target = href.startsWith("http") ? "_blank" : null; // an editor opens no tab
  return h("a", { class: "path", title: location, href, target }, shown);
}

/// A sentence in which lines of code are shown as such, and tasks that are alive as links.
function words(text) {
  return text.split(/(\S+\.rs:\d+(?::\d+)?|\btask \d+)/).map((part, at) => {
    if (at % 2 === 0) return part;
    if (!part.startsWith("task ")) return path(part);
    const id = Number(part.slice(5));
    return tasks.has(id) ? h("button", { class: "link", onclick: () => open(id) }, part) : part;
  });
}

/// Brings the children of `parent` in line with `items`, and keeps those that stay: also the focus.
function keyed(parent, items, key, create, update) {
  const kept = parent.kept ??= new Map(), wanted = new Set(), focused = document.activeElement;
  let at = parent.firstElementChild;
  while (at && !at.isKeyed) at = at.nextElementSibling;
  for (const item of items) {
    const name = key(item);
    wanted.add(name);
    let node = kept.get(name);
    if (!node) {
      node = create(item);
      node.isKeyed = true;
      kept.set(name, node);
    }
    update(node, item);
    if (node === at) at = at.nextElementSibling; else parent.insertBefore(node, at);
  }
  for (const [name, node] of kept) if (!wanted.has(name)) { node.remove(); kept.delete(name); }
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}
function set(parent, ...children) {
  const text = children.map(child => child?.outerHTML ?? child).join("\u0000");
  if (parent.shown === text) return; // so that a selection stays
  parent.shown = text;
  const focusable = () => [...parent.querySelectorAll("a, button")];
  const focused = focusable().indexOf(document.activeElement);
  parent.replaceChildren(...children.filter(child => child !== undefined && child !== null));
  if (focused >= 0) focusable()[focused]?.focus({ preventScroll: true });
}
