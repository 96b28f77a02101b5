// Reads the check files that the official suite wrote and prints one line per scenario, the checks
// that did not pass, and the totals. `scripts/conformance` calls it and documents the exit codes.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { matchesGlob } from "node:path";
import { parseArgs } from "node:util";

// These two wait 1.5 s for a notification from another connection: the only checks that depend on
// how busy the machine is.
const TIMING_SCENARIO = "server-stateless";
const TIMING_CHECKS = ["tools", "prompts"].map(
  (list) => `sep-2575-server-sends-${list}-list-changed-on-subscription`,
);
const EMPTY = { SUCCESS: 0, FAILURE: 0, WARNING: 0, SKIPPED: 0, INFO: 0 };

const { values: options } = parseArgs({
  options: {
    suite: { type: "string" }, // folder of the installed package
    revision: { type: "string" },
    run: { type: "string" }, // folder with the suite's results and its suite.log
    rerun: { type: "string" }, // the timing scenario once more; replaces it if given
    clean: { type: "boolean", default: false },
    ignore: { type: "string", multiple: true, default: [] },
    "wants-rerun": { type: "boolean", default: false }, // only tell whether a second run is due
  },
});

if (options["wants-rerun"]) {
  const open = unclean(results(options.run).get(TIMING_SCENARIO)?.checks ?? []);
  const timing = (check) => check.status === "WARNING" && TIMING_CHECKS.includes(check.id);
  process.exit(open.length > 0 && open.every(timing) ? 0 : 1);
}
report();

function report() {
  const found = results(options.run);
  if (found.size === 0) {
    console.error(`the suite left no result; see ${options.run}/suite.log`);
    process.exit(2);
  }
  if (options.rerun) {
    for (const [name, result] of results(options.rerun)) found.set(name, { ...result, again: true });
  }
  const rows = plan().map((scenario) => judge(scenario, found.get(scenario.name)));
  printTable(rows);
  printOpenChecks(rows);
  printTotals(rows);
  process.exit(rows.some((row) => row.counts && !row.good) ? 1 : 0);
}

/** The scenarios that must have run: the frozen set, or what the log names where there is none. */
function plan() {
  const file = `${options.suite}/requirements/${options.revision}.yaml`;
  if (!existsSync(file)) {
    const log = readFileSync(`${options.run}/suite.log`, "utf8");
    const names = [...log.matchAll(/^=== Running scenario: (\S+) ===$/gm)].map((match) => match[1]);
    return names.map((name) => ({ name, reason: null }));
  }
  const { parse } = createRequire(`${options.suite}/package.json`)("yaml");
  const set = parse(readFileSync(file, "utf8"));
  const reported = (set.not_scored ?? []).filter((entry) => (entry.leg ?? "server") === "server");
  return [
    ...set.server.map((name) => ({ name, reason: null })),
    ...reported.map(({ scenario, reason }) => ({ name: scenario, reason })),
  ];
}

/** The newest checks.json of each scenario: folders are named server-<scenario>-<ISO time>. */
function results(folder) {
  const found = new Map();
  for (const entry of readdirSync(folder).sort()) {
    const name = entry.match(/^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/)?.[1];
    const file = `${folder}/${entry}/checks.json`;
    if (name && existsSync(file)) found.set(name, { checks: JSON.parse(readFileSync(file, "utf8")) });
  }
  return found;
}

function judge({ name, reason }, result) {
  const checks = result?.checks ?? [];
  const count = { ...EMPTY };
  for (const { status } of checks) count[status] += 1;
  const open = unclean(checks);
  const clean = open.length === 0 && count.SUCCESS > 0;
  const ignored = options.ignore.some((glob) => matchesGlob(name, glob));
  const good = options.clean ? clean : result !== undefined && count.FAILURE === 0;
  const counts = !ignored && (options.clean || reason === null);
  return { name, reason, result, count, open, clean, ignored, good, counts };
}

function unclean(checks) {
  return checks.filter(({ status }) => status !== "SUCCESS" && status !== "INFO");
}

function printTable(rows) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name, ...cells) => console.log(`${name.padEnd(width)}  ${cells.join("  ")}`);
  line("scenario", "passed", "failed", "warned", "skipped", "scored".padEnd(24), "verdict");
  for (const row of rows) {
    const { SUCCESS, FAILURE, WARNING, SKIPPED } = row.count;
    const cell = (number, columns) => String(number).padStart(columns);
    const numbers = [cell(SUCCESS, 6), cell(FAILURE, 6), cell(WARNING, 6), cell(SKIPPED, 7)];
    const scored = row.reason === null ? "yes" : `no (${row.reason})`;
    line(row.name, ...numbers, scored.padEnd(24), verdict(row));
  }
}

function verdict({ result, count, clean, ignored }) {
  const words = [];
  if (!result) words.push("NO RESULT");
  else if (clean) words.push("clean");
  else if (count.FAILURE > 0) words.push("FAILED");
  else if (count.WARNING > 0) words.push("warned");
  else words.push("skipped");
  if (result?.again) words.push("at the second run");
  if (ignored) words.push("(ignored)");
  return words.join(" ");
}

function printOpenChecks(rows) {
  const open = rows.filter((row) => !row.ignored && row.open.length > 0);
  if (open.length > 0) console.log("\nChecks that did not pass:");
  for (const { name, open: checks } of open) {
    for (const { id, status, errorMessage, description } of checks) {
      const text = String(errorMessage ?? description ?? "").replace(/\s+/g, " ");
      console.log(`  ${status} ${name}: ${id}: ${text.slice(0, 300)}`);
    }
  }
}

function printTotals(rows) {
  const sum = (status) => rows.reduce((total, { count }) => total + count[status], 0);
  console.log(
    `\n${options.revision}: ${sum("SUCCESS")} checks passed, ${sum("FAILURE")} failed, ` +
      `${sum("WARNING")} warned, ${sum("SKIPPED")} skipped`,
  );
  const groups = Map.groupBy(rows, ({ reason }) => reason ?? "required");
  for (const [group, members] of groups) {
    const clean = members.filter((row) => row.clean).length;
    const unfailed = members.filter(({ result, count }) => result && count.FAILURE === 0).length;
    console.log(`${group}: ${clean}/${members.length} clean, ${unfailed}/${members.length} without failure`);
  }
}
