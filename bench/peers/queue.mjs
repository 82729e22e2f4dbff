// queue.mjs PEER CONCURRENCY SECONDS: claims and completes jobs in loops without a pause, prints {"done", "seconds"}.
// The database is the one of the PG* variables.
import pg from "pg";

const [peer, concurrency, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const database = { host: process.env.PGHOST, user: process.env.PGUSER, database: process.env.PGDATABASE };
const JOBS = 6_000;

// So many loops at once, until the time is over; what each step returns counts.
async function loops(step) {
  const begin = performance.now();
  let done = 0;
  async function loop(number) {
    while (performance.now() - begin < seconds * 1000) {
      if (!(await step(number))) throw new Error("no job left: nothing was measured");
      done++;
    }
  }
  await Promise.all(Array.from({ length: concurrency }, (_, number) => loop(number)));
  return { done, seconds: (performance.now() - begin) / 1000 };
}

const peers = {
  // Its worker's own loop: it has no call that gives one job out. It ends when the queue is empty.
  async "graphile-worker"() {
    const { Logger, runMigrations, runOnce } = await import("graphile-worker");
    const logger = new Logger(() => () => {});
    const pgPool = new pg.Pool({ ...database, max: concurrency + 2 });
    const jobs = 400 * seconds * Math.min(concurrency, 2);
    await runMigrations({ pgPool, logger });
    await pgPool.query("select graphile_worker.add_job('measured', '{}'::json) from generate_series(1, $1::int)", [jobs]);
    let done = 0;
    const begin = performance.now();
    await runOnce({ pgPool, logger, concurrency, taskList: { measured: () => { done++; } }, noHandleSignals: true });
    const result = { done, seconds: (performance.now() - begin) / 1000 };
    await pgPool.end();
    return result;
  },

  async "pg-boss"() {
    const { default: PgBoss } = await import("pg-boss");
    const boss = new PgBoss({ ...database, max: concurrency, supervise: false, schedule: false });
    await boss.start();
    await boss.createQueue("measured");
    await boss.insert(Array.from({ length: JOBS }, () => ({ name: "measured", data: {} })));
    const result = await loops(async () => {
      const [job] = await boss.fetch("measured");
      if (job) await boss.complete("measured", job.id);
      return job;
    });
    await boss.stop({ graceful: false });
    return result;
  },

  async kslate() {
    const pool = new pg.Pool({ ...database, max: concurrency });
    const result = await loops(async () => {
      const { rows: [claim] } = await pool.query({ name: "next", text: "select * from kslate_claim_next('bench', 'task', 60)" });
      if (!claim) return false;
      const values = [claim.record, claim.claim_id];
      await pool.query({ name: "complete", text: "select * from kslate_complete($1, 'task', $2)", values });
      return true;
    });
    await pool.end();
    return result;
  },
};

console.log(JSON.stringify(await peers[peer]()));
process.exit(0);
