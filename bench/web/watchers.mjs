// What fifty open pages of one running experiment cost the server: each asks for what the dashboard
// asks for (web/src/pages/experiment.tsx, load.ts), and optuna-dashboard's for what its page does,
// which is everything since the first trial that runs, every ten seconds.
import fs from "node:fs";
import path from "node:path";

const WATCHERS = 50;
const SECONDS = 20;
const TRIALS = 8;

// Processor seconds of a process and of those that it has started.
function used(pid) {
  const one = (id) => {
    const fields = fs.readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  };
  const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return one(pid) + children.split(" ").filter(Boolean).map(one).reduce((a, b) => a + b, 0);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function experiment() {
  return JSON.stringify({
    apiVersion: "kubeflow.org/v1beta1", kind: "Experiment", metadata: { name: "watched" },
    spec: {
      objective: { type: "minimize", objectiveMetricName: "loss" },
      algorithm: { algorithmName: "random" },
      parameters: Array.from({ length: 9 }, (_, i) => ({
        name: `p${i}`, parameterType: "double", feasibleSpace: { min: "0", max: "1" },
      })),
      maxTrialCount: 1000, parallelTrialCount: TRIALS, shirabe: { askAndTell: true, seed: 3 },
    },
  });
}

async function post(url, body) {
  const reply = await fetch(url, {
    method: "POST", body, headers: { "Content-Type": "application/json" },
  });
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${await reply.text()}`);
  return reply.json();
}

// Eight trials that report twice a second each.
async function report(api, until) {
  const trials = [];
  for (let i = 0; i < TRIALS; ++i) {
    const { trial } = await post(`${api}:ask`, JSON.stringify({ caller: `worker-${i}` }));
    trials.push(trial.status.shirabe.number);
  }
  for (let step = 1; Date.now() < until; ++step) {
    const began = Date.now();
    await Promise.all(trials.map((number) => post(`${api}/trials/${number}:tell`,
      JSON.stringify({ step, metrics: { loss: 1 / step } }))));
    await pause(Math.max(0, began + 500 - Date.now()));
  }
}

// As a page: follows the event stream, and after changes reads the record and the columns that have
// changed, at most once a second.
async function watch(api, until) {
  const abort = new AbortController();
  setTimeout(() => abort.abort(), until - Date.now());
  let changed = false;
  const follow = async () => {
    const reply = await fetch(`${api}/watch`, { signal: abort.signal });
    for await (const piece of reply.body) {
      if (Buffer.from(piece).includes("data:")) changed = true;
    }
  };
  const following = follow().catch(() => undefined);
  const fields = Array.from({ length: 9 }, (_, i) => `param.p${i}`).join(",");
  let revision = 0;
  while (Date.now() < until) {
    if (changed) {
      changed = false;
      await (await fetch(api)).arrayBuffer();
      const since = revision > 0 ? `&since=${revision}` : "";
      const reply = await fetch(
        `${api}/columns?fields=trial,state,objective,start,end,cost,attempts,preemptions,` +
        `lastStep,${fields}${since}`);
      const bytes = Buffer.from(await reply.arrayBuffer());
      const length = bytes.readUInt32LE(8);
      revision = JSON.parse(bytes.subarray(16, 16 + length).toString()).revision;
    }
    await pause(1000);
  }
  await following;
}

async function ours({ binary, folder, serve, freePort }, watchers) {
  const home = path.join(folder, "watched");
  fs.rmSync(home, { recursive: true, force: true });
  const port = await freePort();
  const server = await serve(binary, ["serve", "--insecure", "--grpc", "127.0.0.1:0", "--http",
    `127.0.0.1:${port}`], port, "livez", { SHIRABE_HOME: home });
  await post(`${server.url}api/v1/experiments`, experiment());
  const api = `${server.url}api/v1/namespaces/default/experiments/watched`;
  const until = Date.now() + SECONDS * 1000;
  const before = used(server.pid);
  await Promise.all([report(api, until),
    ...Array.from({ length: watchers }, () => watch(api, until))]);
  const share = (used(server.pid) - before) / SECONDS;
  await server.stop();
  return share;
}

// Of the study of 100 trials, of which none runs: its least.
async function theirs({ peer, folder, serve, freePort }, watchers) {
  const port = await freePort();
  const study = path.join(folder, "100", "study.db");
  const server = await serve(peer, ["--quiet", "--port", String(port), `sqlite:///${study}`], port,
    "dashboard");
  const until = Date.now() + SECONDS * 1000;
  const before = used(server.pid);
  await Promise.all(Array.from({ length: watchers }, async (_, i) => {
    await pause((i / watchers) * 10_000);
    while (Date.now() < until) {
      await (await fetch(`${server.url}api/studies/1?after=0`)).arrayBuffer();
      await pause(10_000);
    }
  }));
  const share = (used(server.pid) - before) / SECONDS;
  await server.stop();
  return share;
}

export async function watched(given) {
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  console.log(`\n${WATCHERS} open pages, ${TRIALS} trials that report twice a second: of a core\n`);
  console.log("| | the server | with no page open |\n| --- | --- | --- |");
  console.log(`| Shirabe | **${percent(await ours(given, WATCHERS))}** | ` +
    `${percent(await ours(given, 0))} |`);
  console.log(`| optuna-dashboard, 100 trials, none running | ` +
    `${percent(await theirs(given, WATCHERS))} | ${percent(await theirs(given, 0))} |`);
}
