
// The graph: each task waits for one other at most, so it is made of trees whose roots are tasks or circles.

function edges() {
  const found = new Map();
  const add = (from, wait) => {
    const to = otherOf(wait);
    if (to === undefined) return;
    found.set(from, { to: to === "itself" ? from : to, isSure: wait.task !== undefined, wait });
  };
  for (const task of last.dump.tasks ?? []) add(task.id, task.waits_for);
  for (const worker of last.dump.workers) {
    const joined = worker.main_waits_for?.task;
    if (joined === undefined || tasks.get(joined)?.task.name !== "main") add("main", worker.main_waits_for);
  }
  return found;
}

/// A task of the circle to which the waits of that one lead.
function inRing(id, found) {
  const seen = new Set();
  for (; !seen.has(id); id = found.get(id).to) seen.add(id);
  return id;
}

function layout(found, circles) {
  const inward = new Map();
  for (const [from, { to }] of found) {
    if (!inward.has(to)) inward.set(to, []);
    inward.get(to).push(from);
  }
  const inCircle = new Set(circles.flat()), places = new Map();
  let row = 0, isFull = false;
  const place = (id, depth) => {
    if (places.size >= NODES) { isFull = true; return; }
    places.set(id, { depth, row });
    const begin = row;
    for (const child of inward.get(id) ?? []) if (!inCircle.has(child) && !places.has(child)) place(child, depth + 1);
    if (row === begin) row += 1;
    places.get(id).row = (begin + row - 1) / 2;
  };
  for (const circle of circles) for (const id of circle) if (!places.has(id)) place(id, 0);
  for (const [, { to }] of found) if (!found.has(to) && !places.has(to)) place(to, 0);
  for (const [, { to }] of found) if (!places.has(to)) place(inRing(to, found), 0); // circles, maybe
  return { places, rows: row, isFull };
}

function showGraph() {
  const found = edges(), isKnown = circle => circle.every(id => found.has(id));
  const circles = last.dump.circles.map(circle => circle.tasks).filter(isKnown);
  const { places, rows, isFull } = layout(found, circles);
  const note = !last.dump.tasks ? "Left out: there are too many tasks." : !places.size ? "None." : isFull
    ? `${NODES} tasks are drawn, of more.`
    : "Left waits for right. Dashed: the task that last took, sent or received it, and may no longer hold it.";
  set($("graph-note"), note);
  const pairs = circle => circle.map((id, at) => [id, circle[(at + 1) % circle.length]]);
  const nextInCircle = new Map(circles.flatMap(pairs));
  const W = 210, H = 42, GAP = 70, deepest = Math.max(0, ...[...places.values()].map(place => place.depth));
  const at = id => ({ x: (deepest - places.get(id).depth) * (W + GAP) + 4, y: places.get(id).row * (H + 14) + 4 });
  const paths = [], nodes = [];
  for (const [from, { to, isSure, wait }] of found) {
    if (!places.has(from) || !places.has(to)) continue;
    const a = at(from), b = at(to), isCircle = nextInCircle.get(from) === to;
    paths.push(edge(a, b, W, H, isCircle, isSure, `${nameOf(from)} waits for ${wait.text}`));
  }
  for (const id of places.keys()) nodes.push(node(id, at(id), W, H, nextInCircle.has(id)));
  const focusedId = document.activeElement?.dataset?.node;
  const width = (deepest + 1) * (W + GAP) + 40, height = Math.max(1, rows) * (H + 14) + 4;
  const svg = s("svg", { width, height, role: "group", "aria-label": "who waits for whom" },
    s("defs", {}, marker("to", ""), marker("to-circle", "circle")), paths, nodes);
  if (!places.size) return set($("graph"));
  set($("graph"), svg);
  if (focusedId !== undefined) $("graph").querySelector(`[data-node="${focusedId}"]`)?.focus({ preventScroll: true });
}

const marker = (id, kind) => s("marker", { id, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8,
  markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0 8 4 0 8z" }));

function edge(a, b, W, H, isCircle, isSure, title) {
  const y = a.y + H / 2, Y = b.y + H / 2, right = a.x + W;
  let d = `M${right} ${y} C${right + 35} ${y} ${b.x - 35} ${Y} ${b.x} ${Y}`;
  if (isCircle) {
    const isBack = b.y <= a.y, bulge = isBack ? 60 : 26;
    const [start, end] = isBack ? [y + 10, Y - 10] : [y + 6, Y - 6];
    d = `M${right} ${start} C${right + bulge} ${start} ${right + bulge} ${end} ${right} ${end}`;
  }
  const kind = [isCircle ? "circle" : "", isSure ? "" : "maybe"].join(" ").trim();
  return s("path", { d, class: kind, "marker-end": `url(#${isCircle ? "to-circle" : "to"})` }, s("title", {}, title));
}

function node(id, { x, y }, W, H, isCircle) {
  const task = tasks.get(id)?.task, name = nameOf(id);
  const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
  const where = id === "main" ? "in block_on" : task ? task.spawned_at.split("/").pop() : "not alive here";
  const press = event => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(id);
  };
  const props = task ? { tabindex: 0, role: "button", onclick: press, onkeydown: press } : {};
  return s("g", { class: isCircle ? "circle" : "", "data-node": id, "aria-label": `${name}, ${where}`, ...props },
    s("rect", { x, y, width: W, height: H, rx: 6 }),
    s("text", { x: x + 10, y: y + 17 }, cut(name, 26)),
    s("text", { x: x + 10, y: y + 33, class: "soft" }, cut(where, 30)),
    s("title", {}, `${name}, ${task?.spawned_at ?? where}`));
}
