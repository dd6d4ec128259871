
// One task, in a dialog.

function open(id) {
  detail = id;
  showDetail();
  if (!$("detail").open) $("detail").showModal();
}
$("close").addEventListener("click", () => $("detail").close());
$("detail").addEventListener("close", () => { detail = null; });

function showDetail() {
  const known = tasks.get(detail);
  set($("detail-title"), nameOf(detail));
  if (!known) {
    set($("detail-facts"), h("dt", {}, "State"), h("dd", {}, "it has ended, or is no longer shown"));
    return set($("history"));
  }
  const { task, history } = known, to = otherOf(task.waits_for);
  const rows = [["Spawned at", path(task.spawned_at)]];
  rows.push(["State", h("span", { class: "state", "data-is": task.state }, known.hasEnded ? "ended" : task.state)]);
  if (task.waits_for && !known.hasEnded) {
    rows.push([task.state === "lost" ? "Last wait" : "Waits for", words(what(task))]);
  }
  if (tasks.has(to) && to !== detail) {
    const { task: joined, last_taken_by: taker, last_sent_by: sender } = task.waits_for;
    const names = [[joined, "Joins"], [taker, "Last taken by"], [sender, "Last sent by"], [to, "Received by"]];
    rows.push([names.find(([id]) => id !== undefined)[1], taskLink(to)]);
  }
  rows.push(["Polls", `${count(task.polls)}, ${rate(known.rate)} a second`]);
  if (task.unchanged_seconds !== undefined && !known.hasEnded) {
    rows.push(["Waiting for", `at least ${time(task.unchanged_seconds)}`]);
  }
  set($("detail-facts"), ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  set($("history"), ...history.map(({ text, from, to, first, last: polls, waits }) => h("tr", {},
    h("td", { class: "num", "data-label": "seen at" }, time(from)),
    h("td", { class: "num", "data-label": "lasted" }, time(Math.max(0, to - from))),
    h("td", { class: "num", "data-label": "polls" }, count(polls - first)),
    h("td", {}, words(text), waits > 1 ? `, ${count(waits)} waits` : ""))));
}

// Events, as they come.

let source;
function say(is, text) {
  $("status").dataset.is = is;
  if ($("status").textContent !== text) $("status").textContent = text;
}
function connect() {
  source = new EventSource("events");
  source.onmessage = message => {
    isLost = false;
    if (isPaused) return;
    take(JSON.parse(message.data));
    document.body.classList.remove("stale");
    say("live", last.dump.has_ended ? "the runtime shuts down, or has ended" : "live");
    show();
  };
  source.onerror = () => {
    if (!isLost) say("lost", `no connection since ${new Date().toLocaleTimeString()}; trying again`);
    isLost = true;
    document.body.classList.add("stale");
    if (source.readyState !== EventSource.CLOSED) return;
    say("lost", "the program does not answer, or has too many pages open; trying again");
    setTimeout(connect, 2000);
  };
}
$("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  $("pause").setAttribute("aria-pressed", isPaused);
  if (isPaused) say("paused", "paused");
  else say("live", "live");
});
connect();
