
// Shows what is known, except for the graph and single tasks.

function nameOf(id) {
  if (id === "main") return "the main task";
  const name = tasks.get(id)?.task?.name;
  return `task ${id}` + (name === undefined ? "" : ` “${name}”`);
}
function taskLink(id) {
  if (!tasks.has(id)) return nameOf(id);
  return h("button", { class: "link", onclick: () => open(id) }, nameOf(id));
}

function show() {
  const { dump } = last;
  document.title = `${verdictCount() || ""} mini console`.trim();
  set($("facts"), ...[
    ["runtime", dump.runtime], ["", dump.flavour], ["up", time(dump.up_seconds)],
    ["tasks", count(last.metrics.alive_tasks)], ["polls/s", total === null ? "…" : count(Math.round(total))],
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value)))));
  $("trace").hidden = !dump.records;
  showOff();
  showVerdicts();
  showWorkers();
  showHistograms();
  showGroups();
  showGraph();
  showBlocking();
  showWarnings();
  if (detail !== null) showDetail();
}

const stalled = () => last.dump.workers.filter(worker => worker.stuck !== null);
const lostGroups = () => groups.filter(group => group.first.state === "lost");
const verdictCount = () => (last.dump.shortage ? 1 : 0) +
  last.dump.circles.length + stalled().length + lostGroups().reduce((sum, group) => sum + group.count, 0);

function waitOf(id) {
  if (id !== "main") return tasks.get(id)?.task;
  const worker = last.dump.workers.find(worker => worker.main_waits_for);
  return worker && { waits_for: worker.main_waits_for };
}

function showVerdicts() {
  const { dump } = last, found = [];
  if (dump.shortage) found.push([["shortage"], `No file descriptor is free: ${dump.shortage}`]);
  if (dump.has_ended) found.push([["end"], "The runtime shuts down, or has ended"]);
  for (const circle of dump.circles.slice(0, LISTED)) {
    const { tasks: ids, over_locks: overLocks } = circle;
    const isUnsure = circle.waits_for_more || !(circle.unchanged_seconds >= 1);
    const doubts = [isUnsure && "one also waits for something else", overLocks && "a lock has passed to another task"];
    const unless = doubts.filter(doubt => doubt).join(", or ");
    const title = `${unless ? "Possible deadlock" : "Deadlock"}: ${plural(ids.length, "task")} in a circle`;
    const about = `Each waits for the next one${overLocks ? ", or for a lock that the next one took" : ""}.` +
      (unless && ` There is no deadlock if ${unless}.`);
    const lines = ids.slice(0, 2 * LISTED).map(id => {
      const task = waitOf(id), waited = task?.unchanged_seconds;
      const lasts = waited ? `, for at least ${time(waited)}` : "";
      return [taskLink(id), task ? [" waits for ", words(what(task))] : "", lasts];
    });
    if (ids.length > lines.length) lines.push([`and ${plural(ids.length - lines.length, "task")} more`]);
    found.push([["circle", ...ids], title, lines, about]);
  }
  const others = dump.circles.length - LISTED;
  if (others > 0) found.push([["circles"], `and ${plural(others, "circle")} more`]);
  for (const worker of stalled()) {
    found.push([["stalled", worker.index], `Worker ${worker.index} is stuck in one poll for ${time(worker.stuck)}`, [
      ["in ", taskLink(worker.task), " ", path(tasks.get(worker.task)?.task.spawned_at)],
    ]]);
  }
  const lost = lostGroups(), all = lost.reduce((sum, group) => sum + group.count, 0);
  if (all) {
    const lines = lost.slice(0, LISTED).flatMap(group => (group.members ?? [group.first]).slice(0, LISTED).map(task => [
      group.members ? taskLink(task.id) : plural(group.count, "task"), " spawned at ", path(task.spawned_at),
      "; its last wait: ", words(what(task)),
    ]));
    const rest = lost.reduce((sum, group) => sum + (group.members?.length ?? 1), 0) - lines.length;
    if (rest > 0) lines.push([`and ${count(rest)} more: filter the tasks by “lost”`]);
    const them = all === 1 ? "it" : "them";
    found.push([["lost"], `Lost: ${plural(all, "task")}, waiting, with no waker left`, lines]);
  }
  set($("verdict-count"), verdictCount() ? `: ${count(verdictCount())}` : "");
  $("verdicts").classList.toggle("bad", found.length > 0);
  if (!found.length) found.push([["none"], null, null]);
  keyed($("verdict-list"), found, ([key]) => key.join(), () => h("div", {}), (node, [, title, lines, about]) => {
    const list = lines && h("ul", {}, lines.map(line => h("li", {}, line)));
    if (title === null) set(node, h("span", { class: "soft" }, "Nothing found. Not every lost task can be seen."));
    else set(node, h("h3", {}, title), about && h("p", { class: "soft" }, about), list);
  });
}

function showWorkers() {
  const { dump, metrics } = last, up = dump.up_seconds;
  keyed($("workers"), dump.workers, worker => worker.index, worker => h("div", { class: "worker" },
    h("span", {}, `worker ${worker.index}`), h("span", { class: "state" }),
    s("svg", { viewBox: `0 0 ${SPAN} 10`, preserveAspectRatio: "none", role: "img" }), h("span", { class: "numbers" }),
  ), (node, worker) => {
    const [, state, svg, numbers] = node.children, counts = metrics.workers[worker.index];
    const now = samples.at(-1).workers[worker.index];
    state.dataset.is = now.state;
    set(state, now.state === "running" ? "at work" : now.state, worker.stuck === null ? "" : ` ${time(worker.stuck)}`);
    const bars = [];
    let stuck = 0, busy = 0, seen = 0;
    for (const sample of samples) {
      const { state, busy: share } = sample.workers[worker.index], x = SPAN - (up - sample.up) - sample.passed;
      if (state !== "no thread") bars.push(bar("c-parked", x, sample.passed, .12));
      if (state === "stalled" || state === "block_in_place") bars.push(bar(`c-${state}`, x, sample.passed, 1));
      else if (share) bars.push(bar("c-running", x, sample.passed, Math.max(share, .12)));
      if (state === "stalled") stuck += sample.passed;
      if (share !== null) { busy += share * sample.passed; seen += sample.passed; }
    }
    svg.replaceChildren(...bars);
    const label = seen ? `busy ${Math.round(100 * busy / seen)} % of ${time(seen)}` : "seen just now";
    svg.setAttribute("aria-label", label + (stuck ? `, stalled for ${time(stuck)}` : ""));
    numbers.title = `${plural(counts.polls, "poll")}, ${plural(counts.parks, "park")}, ` +
      `${plural(counts.steals, "task")} stolen, ${count(counts.queued)} queued`;
    set(numbers, now.polls === null ? "" : `${Math.round(100 * now.busy)} % busy, ${rate(now.polls)} polls/s` +
      (counts.queued ? `, ${count(counts.queued)} queued` : ""));
  });
}
/// How to turn on what is off, except for warnings.
function showOff() {
  const code = text => h("code", {}, text);
  set($("off"), last.dump.records ? "" : h("li", {}, "The trace is off: ", code("Builder::flight_recorder(1 << 20)"),
    " turns it on, and so does ", code("MINI_TRACE=FILE"), " if the program has ", code("#[mini::main]"), "."),
  last.metrics.poll_time ? "" : h("li", {}, "The histograms of polls and queues are off: ",
    code("Builder::histograms(true)"), " turns them on."));
}

/// How long polls took, and how long tasks waited for a worker, if the runtime counts that.
function showHistograms() {
  const { poll_time: polls, queue_delay: delays } = last.metrics;
  const rows = [["a poll", polls], ["waiting for a worker", delays]].filter(([, counted]) => counted?.count);
  $("histograms").hidden = !rows.length;
  const labels = ["half below", "90 %", "99 %", "99.9 %", "longest"];
  set($("histograms").tBodies[0], ...rows.map(([name, { quantiles }]) => h("tr", {}, h("td", {}, name),
    quantiles.map(([, seconds], at) => h("td", { class: "num", "data-label": labels[at] }, time(seconds))))));
}

const bar = (kind, x, width, share) =>
  s("rect", { class: kind, x, width: width + .05, y: 10 - 10 * share, height: 10 * share });

const SORTS = { count: "tasks", rate: "polls/s", waiting: "time of waiting" };
for (const [name, text] of Object.entries(SORTS)) {
  $("sort").append(h("button", { "aria-pressed": String(name === order), "data-sort": name, onclick: () => {
    order = name;
    for (const button of $("sort").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", button.dataset.sort === name);
    }
    if (last) showGroups();
  } }, text));
}
$("filter").addEventListener("input", () => last && showGroups());

function fits(group, words) {
  const { first } = group;
  const text = [first.name, first.spawned_at, first.state, first.waits_for?.text, what(first),
    ...(group.members ?? []).map(task => `task ${task.id} `)].join(" ").toLowerCase();
  return words.every(word => text.includes(word));
}

function showGroups() {
  const { dump } = last, words = $("filter").value.toLowerCase().split(/\s+/).filter(word => word);
  const shown = groups.filter(group => fits(group, words));
  shown.sort((a, b) => b[order] - a[order] || b.count - a.count || (a.key < b.key ? -1 : 1));
  keyed($("groups"), shown.slice(0, GROUPS), group => group.key, newGroup, updateGroup);
  const notes = [];
  if (!dump.tasks) {
    notes.push(`${plural(dump.task_count, "task")}: with so many, only groups are shown, ` +
      "without single tasks, their history and their graph.");
    if (dump.groups_left_out) notes.push(`${plural(dump.groups_left_out, "smaller group")} left out.`);
  }
  if (dump.new_tasks) notes.push(`${plural(dump.new_tasks, "new task")} not yet taken by a worker.`);
  if (shown.length > GROUPS) notes.push(`${plural(shown.length - GROUPS, "group")} more: the filter finds them.`);
  if (!shown.length) notes.push(groups.length ? "No task fits the filter." : "No tasks.");
  set($("tasks-note"), notes.join(" "));
}

function newGroup({ key }) {
  const toggle = h("button", { class: "toggle", "aria-expanded": "false", onclick: () => {
    if (opened.has(key)) opened.delete(key); else opened.add(key);
    showGroups();
  } });
  const cell = (name, label) => h("td", { class: name, "data-label": label });
  return h("tbody", {}, h("tr", { class: "group" },
    h("td", { class: "num" }, toggle), cell("", "spawned at"), cell("", ""), cell("num", "polls/s"),
    cell("num", "waits at least")));
}

function updateGroup(body, group) {
  const { first } = group, [tasksCell, spawned, state, polls, waiting] = body.firstChild.children;
  const toggle = tasksCell.firstChild, isOpen = opened.has(group.key);
  toggle.setAttribute("aria-expanded", isOpen);
  toggle.setAttribute("aria-label", `${plural(group.count, "task")} spawned at ${first.spawned_at}`);
  toggle.toggleAttribute("data-one", group.count === 1);
  set(toggle, count(group.count));
  const name = first.name === undefined ? null : h("span", { class: "name" }, `“${first.name}” `);
  set(spawned, name, path(first.spawned_at));
  const wait = group.members?.length > 1 && group.kind ? group.kind : first.waits_for ? what(first) : "";
  set(state, h("span", { class: "state", "data-is": first.state }, first.state), wait ? ": " : "", ...words(wait));
  set(polls, rate(group.rate));
  set(waiting, group.waiting < 0 ? "–" : time(group.waiting));
  if (!isOpen) return body.children[1]?.remove();
  const row = body.children[1] ?? body.appendChild(h("tr", { class: "members" },
    h("td", { colspan: "5" }, h("ul", { class: "plain" }), h("p", { class: "note" }))));
  const [list, note] = row.firstChild.children;
  if (!group.members) {
    note.textContent = `Some of them: task ${group.ids.join(", ")}.`;
    return;
  }
  const waited = task => task.unchanged_seconds ?? -1;
  const members = [...group.members].sort((a, b) => waited(b) - waited(a) || a.id - b.id);
  keyed(list, members.slice(0, MEMBERS), task => task.id, task => h("li", {},
    h("button", { class: "link", onclick: () => open(task.id) }, nameOf(task.id)), h("span", { class: "soft" }),
  ), (node, task) => {
    const waited = task.unchanged_seconds === undefined ? "" : `, waiting for ${time(task.unchanged_seconds)}`;
    node.lastChild.textContent = `  ${plural(task.polls, "poll")}${waited}`;
  });
  note.textContent = members.length > MEMBERS ? `and ${count(members.length - MEMBERS)} more` : "";
}

function showBlocking() {
  const { blocking, crowded_channels: channels, up_seconds: up } = last.dump, lines = new Map();
  for (const { id, spawned_at: line } of blocking.running) {
    const { number, lasts } = lines.get(line) ?? { number: 0, lasts: 0 };
    lines.set(line, { number: number + 1, lasts: Math.max(lasts, up - jobs.get(id)) });
  }
  const isFull = blocking.queued > 0 && blocking.idle === 0;
  set($("blocking"),
    h("div", {}, `${plural(blocking.threads, "thread")}, ${count(blocking.idle)} idle; `,
      h("span", { class: "state", "data-is": isFull ? "warn" : "waiting" },
        `${plural(blocking.queued, "job")} in the queue`)),
    lines.size ? h("ul", { class: "plain" }, [...lines].sort((a, b) => b[1].number - a[1].number).map(
      ([line, { number, lasts }]) => h("li", {}, `${plural(number, "job")} at `, path(line), `, up to ${time(lasts)}`),
    )) : h("div", { class: "soft" }, "No job is running."),
    h("ul", { class: "plain" }, channels.map(({ messages, made_at, last_received_by: task }) => h("li", {},
      h("span", { class: "state", "data-is": "warn" }, plural(messages, "message")),
      " in a channel made at ", path(made_at),
      task === undefined ? "" : [", last received by ", taskLink(task)]))));
}

function showWarnings() {
  const list = [...last.warnings].reverse();
  set($("warnings"), ...list.map(({ kind, text, at_seconds }) => h("li", {},
    h("span", { class: "soft" }, `at ${time(at_seconds)}  `), h("span", { class: "state", "data-is": "warn" }, kind),
    words(text.startsWith(kind) ? text.slice(kind.length) : ": " + text))));
  set($("warnings-note"), !last.dump.warns
    ? "Warnings are off: MINI_WARN=1 turns them on, and so does Builder::warnings(true)."
    : list.length ? "Each is shown once per line of code." : "None.");
}
