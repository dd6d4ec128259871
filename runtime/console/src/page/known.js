
// What is known: the last two events; each task with its history; samples of the workers; what the user has chosen.

let last, before, tasks = new Map(), groups = [], samples = [], total = null, isPaused = false, isLost = true;
let jobs = new Map(); // since when each blocking job runs
let order = "count", opened = new Set(), detail = null;

function forget() {
  last = before = undefined;
  [tasks, groups, samples, total, jobs] = [new Map(), [], [], null, new Map()];
  $("detail").close(); // the ids are given anew
}

function take(event) {
  if (last && (event.dump.runtime !== last.dump.runtime || event.dump.up_seconds < last.dump.up_seconds)) forget();
  [before, last] = [last, event];
  const { dump, metrics } = event, up = dump.up_seconds;
  const passed = before ? up - before.dump.up_seconds : 0;
  const isGap = !before || passed > Math.max(4, 30 * event.took_seconds); // unseen meanwhile
  const share = (now, then) => passed > 0 ? Math.max(0, now - then) / passed : null;
  const worked = (what, at) => share(metrics.workers[at][what], before.metrics.workers[at][what]);
  const sum = event => event.metrics.workers.reduce((sum, worker) => sum + worker.polls, 0);
  total = before ? share(sum(event), sum(before)) : null;
  dump.workers.forEach((worker, at) => { worker.stuck = stuck(worker, at, up); });
  samples.push({
    up, passed: isGap ? 1 : passed,
    workers: dump.workers.map((worker, at) => ({ // `null`: not known, as nothing was seen before
      state: worker.stuck === null ? worker.state : "stalled",
      busy: before ? Math.min(1, worked("busy_seconds", at) ?? 0) : null,
      polls: before ? worked("polls", at) : null,
    })),
  });
  samples = samples.filter(sample => sample.up > up - SPAN - 5);
  if (dump.tasks) dump.tasks.forEach(task => note(task, up, passed)); else tasks = new Map();
  for (const [id, known] of tasks) {
    if (known.seen === up) continue;
    if (id === detail) known.hasEnded = true; else tasks.delete(id);
  }
  const running = dump.blocking.running;
  jobs = new Map(running.map(job => [job.id, Math.min(jobs.get(job.id) ?? Infinity, up - (job.seconds ?? 0))]));
  groups = dump.tasks ? grouped(dump.tasks) : dump.groups.map(told => group(told, dump.since_seconds));
}

/// For how long a worker has been in one poll, if that is too long. Nobody watches the only worker of a runtime: of
/// that one the runtime knows only what has changed since the event before.
function stuck(worker, at, up) {
  if (worker.seconds === undefined) return null;
  const was = before?.dump.workers[at], polls = event => event.metrics.workers[at].polls;
  const isSame = was?.since !== undefined && was.task === worker.task && polls(before) === polls(last);
  worker.since = Math.min(up - worker.seconds, isSame ? was.since : Infinity);
  const lasts = up - worker.since;
  return worker.state === "stalled" || worker.state === "running" && lasts >= STUCK ? lasts : null;
}

/// The task for which one waits, be it sure or not.
const otherOf = wait =>
  wait?.task ?? wait?.last_taken_by ?? wait?.last_sent_by ?? wait?.last_received_by;

/// What a task waits for, in words.
function what(task) {
  const wait = task.waits_for;
  if (!wait) return task.state;
  let text = wait.text === "unknown" ? "something unknown to mini" : wait.text;
  const hasTask = otherOf(wait) !== undefined;
  if (task.taken_at) text += hasTask ? ` at ${task.taken_at}` : `, taken at ${task.taken_at}`;
  if (task.received_at) text += hasTask ? ` at ${task.received_at}` : `, last received at ${task.received_at}`;
  if (task.is_unpolled_since) text += ", for a future that has not been polled since";
  if (task.capacity !== undefined) text += `; full: ${count(task.capacity)} of ${count(task.capacity)}`;
  if (task.senders !== undefined) text += `; ${plural(task.senders, "sender")} left`;
  if (task.last_sender_made_at) text += `, last made at ${task.last_sender_made_at}`;
  if (task.beside) text += `; beside: ${task.beside.map(other => other.text).join(", ")}`;
  return text;
}

function note(task, up, passed) {
  let known = tasks.get(task.id);
  if (!known) tasks.set(task.id, known = { history: [] });
  const was = known.task;
  known.rate = was && passed > 0 ? Math.max(0, task.polls - was.polls) / passed : 0;
  known.task = task;
  known.seen = up;
  const text = (task.state === "lost" ? "LOST; its last wait: " : "") + what(task), newest = known.history[0];
  const isSame = newest && newest.text === text && (!task.waits_for || newest.last === task.polls);
  if (isSame || newest?.text === text) {
    newest.to = up;
    newest.waits += isSame ? 0 : 1;
    newest.last = task.polls;
  } else {
    const from = task.unchanged_seconds !== undefined ? up - task.unchanged_seconds : up;
    known.history.unshift({ text, from, to: up, first: task.polls, last: task.polls, waits: 1 });
    known.history.length = Math.min(known.history.length, HISTORY);
  }
}

function grouped(list) {
  const found = new Map();
  for (const task of list) {
    const wait = task.waits_for, kind = wait && (wait.kind ? `${wait.kind} at ${wait.at}` : what(task));
    const key = JSON.stringify([task.spawned_at, task.name, task.state, kind, task.taken_at]);
    let group = found.get(key);
    if (!group) {
      found.set(key, group = { key, first: task, kind, count: 0, rate: 0, waiting: -1, members: [] });
    }
    group.count += 1;
    group.rate += tasks.get(task.id).rate;
    group.waiting = Math.max(group.waiting, task.unchanged_seconds ?? -1);
    group.members.push(task);
  }
  return [...found.values()];
}

/// A group as the runtime tells it.
function group(told, since) {
  const key = JSON.stringify([told.spawned_at, told.name, told.state, told.waits_for?.text, told.taken_at]);
  const waiting = told.unchanged_seconds ?? -1;
  return { key, first: told, count: told.count, rate: since ? told.polled / since : 0, waiting, ids: told.ids };
}
